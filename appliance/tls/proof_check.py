"""Check that a first flight comes from a peer that knows the secret, now, and for the first time; pure."""

from collections.abc import Callable

from appliance.errors import ClockDiffers, IdentityRefused
from appliance.settings.values import KeyExchange
from appliance.tls.first_flight import NotProven, Proof, TokenKeys, client_hello, offers_only, proof_in

Clock = Callable[[], float]

TOLERANCE = 120.0
"""Largest difference of the two VMs' clocks, in seconds."""


class ProofCheck:
    """Examines the first flights of one server.

    It remembers each token for as long as it could be replayed. Only a peer that knows the secret can make it remember
    one, and the limit of handshakes bounds their number.
    ``clock`` is in seconds since 1970, ``monotonic`` in seconds by a clock that is never set.
    """

    def __init__(self, keys: TokenKeys, clock: Clock, monotonic: Clock, exchange: KeyExchange) -> None:
        self._keys = keys
        self._exchange = exchange
        self._clock = clock
        self._monotonic = monotonic
        self.tokens: dict[bytes, float] = {}

    def examine(self, received: bytes) -> Proof | None:
        """The proof in the first bytes of a connection; None: more of them have to come.

        Raises:
            ClockDiffers: the secret is right, the time is not.
            IdentityRefused: there is no proof, or it was used before, or its keys are dear.
        """
        try:
            record = client_hello(received)
            if record is None:
                return None
            proof = proof_in(record, self._keys)
        except NotProven:
            raise IdentityRefused("its first bytes do not prove that it knows SHARED_SECRET") from None
        if not offers_only(self._exchange, proof.hello):
            differs = "TUNNEL_KEY_EXCHANGE differs on its VM, or that VM is in FIPS mode"
            raise IdentityRefused(f"it offers other keys than those of {self._exchange}: {differs}")
        self._check_time(proof)
        self._check_new(proof)
        return proof

    def _check_time(self, proof: Proof) -> None:
        ahead = proof.time - self._clock()
        if abs(ahead) > TOLERANCE:
            how = "ahead of" if ahead > 0 else "behind"
            raise ClockDiffers(f"its clock is {abs(ahead):.0f} s {how} ours, or somebody plays a recorded hello again")

    def _check_new(self, proof: Proof) -> None:
        now = self._monotonic()
        while self.tokens and next(iter(self.tokens.values())) < now - 2 * TOLERANCE:
            del self.tokens[next(iter(self.tokens))]
        if proof.token in self.tokens:
            raise IdentityRefused("somebody plays a recorded hello again")
        self.tokens[proof.token] = now
