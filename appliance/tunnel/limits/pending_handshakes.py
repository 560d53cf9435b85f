"""Limits of unauthenticated connections: at once, and in a second.

They are counted apart from carried connections, so that thousands of idle connections take no slot from an
authenticated peer. Each address has a share, and all together have a limit. The shares of the expected addresses lie
outside of this limit, so strangers from many addresses cannot use them up. Expected are the peer's address in the
settings, and the address from which the peer last authenticated: inside SSH, the SSH server's.

Over a limit, the newest connection replaces the oldest that has sent nothing yet (``first_flight_reader``): a peer
authenticates with its first bytes, so idle connections keep no peer out. Over a rate, a connection is reset before
anything is created for it.

The client stays far below its share: it makes ``HANDSHAKES_AT_ONCE`` handshakes at a time.
"""

import contextlib
import enum
import logging
from collections import Counter
from collections.abc import Callable, Iterator

from appliance.clock import monotonic
from appliance.tunnel.limits.counters import Counters, Refusal

log = logging.getLogger("appliance.tunnel")

PENDING_OF_ONE_MAX = 256
"""Most connections from one address."""

PENDING_MAX = 1024
"""Most connections from all addresses but the expected ones."""

HANDSHAKES_AT_ONCE = 64
"""Most handshakes that a client has under way."""

EXPECTED_A_SECOND, OTHERS_A_SECOND = 2000.0, 500.0
"""Most connections a second from each expected address, and from all others together."""


class Room(enum.Enum):
    """The room for another connection from an address: free, full for that address, or full for all others."""

    FREE = enum.auto()
    ONE_FULL = enum.auto()
    ALL_FULL = enum.auto()


class RateLimit:
    """A token bucket: admits ``rate`` a second in the long run, and up to ``burst`` at once after a pause."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = burst
        self._at = clock()

    def admits(self) -> bool:
        """True, and one fewer is left, if one more may happen now."""
        self._fill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    @property
    def relaxed(self) -> bool:
        """True if at least half of a burst may happen now."""
        self._fill()
        return 2 * self._tokens >= self._burst

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + self._rate * (now - self._at))
        self._at = now


class PendingHandshakes:
    """Counts unauthenticated connections, and logs when a crowd begins and ends.

    ``expected`` are the peer's addresses by the settings.
    """

    def __init__(
        self,
        expected: tuple[str, ...],
        counters: Counters,
        limit: int = PENDING_MAX,
        limit_of_one: int = PENDING_OF_ONE_MAX,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._configured = expected
        self._authenticated = ""
        self._counters = counters
        self._limit = limit
        self._limit_of_one = limit_of_one
        self._clock = clock
        self._rates = {address: self._expected_rate() for address in expected}
        self._others_rate = RateLimit(OTHERS_A_SECOND, limit, clock)
        self.by_host: Counter[str] = Counter()
        """The connections whose handshake is not complete, by the host that dialled."""
        self._refused = 0

    def expects(self, address: str) -> bool:
        """True for an address of the peer."""
        return address in self._configured or (address == self._authenticated and bool(address))

    def proved(self, address: str) -> None:
        """Record that the peer has proved itself from ``address``."""
        if address not in self._configured and address != self._authenticated:
            self._rates.pop(self._authenticated, None)
            self._rates[address] = self._expected_rate()
            self._authenticated = address

    def room(self, address: str) -> Room:
        """The room for another connection from ``address``."""
        if self.by_host[address] >= self._limit_of_one:
            return Room.ONE_FULL
        return Room.FREE if self.expects(address) or self._others() < self._limit else Room.ALL_FULL

    def within_rate(self, address: str) -> bool:
        """True if a connection from ``address`` is within its rate, which then counts it."""
        return self._rates.get(address, self._others_rate).admits()

    def refused(self, address: str) -> None:
        """Count and log a connection from ``address`` that is refused, or that replaces another."""
        if not self._refused:
            log.warning(
                "connections refused: too many are unauthenticated; let the firewall admit only the peer",
                extra={"fields": {"peer": address, "from_it": self.by_host[address], "in_all": self.by_host.total()}},
            )
        self._refused += 1
        self._counters.refused[Refusal.CROWD] += 1

    @contextlib.contextmanager
    def present(self, address: str) -> Iterator[None]:
        """Count a connection from ``address`` while the block runs."""
        self.arrived(address)
        try:
            yield
        finally:
            self.left(address)

    def arrived(self, address: str) -> None:
        """Count a connection from ``address``, until it has ``left``."""
        self.by_host[address] += 1

    def left(self, address: str) -> None:
        """Stop counting a connection from ``address``: it is authenticated, or closed."""
        self.by_host[address] -= 1
        if not self.by_host[address]:
            del self.by_host[address]
        if self._refused:
            self._settle()

    def _expected_rate(self) -> RateLimit:
        return RateLimit(EXPECTED_A_SECOND, EXPECTED_A_SECOND, self._clock)

    def _settle(self) -> None:
        """The crowd has gone when half of the room is free: at the limit itself it would come and go all the time."""
        if 2 * self._others() > self._limit:
            return
        if not all(rate.relaxed for rate in (*self._rates.values(), self._others_rate)):
            return
        if 2 * max(self.by_host.values(), default=0) <= self._limit_of_one:
            log.info("room for handshakes again", extra={"fields": {"refused": self._refused}})
            self._refused = 0

    def _others(self) -> int:
        return self.by_host.total() - sum(self.by_host[address] for address in self._rates)
