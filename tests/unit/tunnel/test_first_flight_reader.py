"""A connection until its first flight has come: proven, refused or waited for, whatever comes in whatever pieces."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import ApplianceError
from appliance.settings.values import KeyExchange
from appliance.tls.first_flight import Proof
from appliance.tls.proof_check import ProofCheck
from appliance.tunnel.first_flight_reader import READS_MAX, FirstFlights
from appliance.tunnel.limits.counters import Counters
from appliance.tunnel.limits.pending_handshakes import PendingHandshakes
from tests.unit.tls.test_first_flight import KEYS, NOW, sealed_hello

HOST = "192.0.2.7"
SEALED = sealed_hello()


class FakeTransport(asyncio.Transport):
    """A transport that notes its end; nothing may be written to it."""

    def __init__(self) -> None:
        super().__init__({"peername": (HOST, 1)})
        self.over = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:  # noqa: ARG002
        self.over = True

    def close(self) -> None:
        self.over = True

    def abort(self) -> None:
        self.over = True


@given(
    changed=st.lists(st.tuples(st.integers(0, 600), st.binary(min_size=1, max_size=40)), max_size=3),
    more=st.binary(max_size=20),
    cuts=st.lists(st.integers(1, 600), max_size=10),
)
def test_any_bytes_in_any_pieces_are_proven_refused_or_waited_for_and_nothing_is_kept(
    changed: list[tuple[int, bytes]], more: bytes, cuts: list[int]
) -> None:
    sent = bytearray(SEALED)
    for at, piece in changed:
        sent[at : at + len(piece)] = piece
    sent += more
    proofs: list[Proof] = []
    errors: list[ApplianceError] = []

    def proven(_transport: asyncio.Transport, proof: Proof) -> asyncio.BufferedProtocol:
        proofs.append(proof)
        return asyncio.BufferedProtocol()

    async def read() -> None:
        check = ProofCheck(KEYS, lambda: NOW, lambda: NOW, KeyExchange.X25519)
        pending = PendingHandshakes((HOST,), Counters())
        flights = FirstFlights(check, pending, 5.0, proven, lambda _host, error: errors.append(error))
        reader, transport = flights.reader(), FakeTransport()
        reader.connection_made(transport)
        at = reads = 0
        for size in [*cuts, len(sent)]:
            piece = sent[at : at + size]
            if transport.over or not piece:
                break
            reader.get_buffer(-1)[: len(piece)] = piece
            reader.buffer_updated(len(piece))
            at, reads = at + size, reads + 1
        assert reads <= READS_MAX
        reader.connection_lost(None)
        assert (len(proofs), len(errors)) in ((1, 0), (0, 1))
        assert bool(proofs) is (sent[:at] == SEALED)
        assert (flights._under_way, flights._of_one) == ({}, {})

    asyncio.run(read())
