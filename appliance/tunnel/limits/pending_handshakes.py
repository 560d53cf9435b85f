"""Limits of connections without a proved identity: at once, and in a second.

They are counted apart from the connections that are carried, so that thousands of idle connections take no slot from a
peer that proves itself. Each address has a share, and all of them together have a limit, outside of
which the shares of the expected addresses lie: strangers from many addresses cannot take them. Expected is the address
that the settings name, and the one from which the peer proved itself last: inside SSH that is the SSH server's.

Over a limit the newest takes the place of the oldest that has sent nothing yet (``first_flight_reader``): a peer proves
itself with its first bytes, so that idle connections keep none out. Over a rate a connection is reset before
anything is made for it.

The client never comes near its share: it shakes hands on ``HANDSHAKES_AT_ONCE`` connections at a time.
"""

import contextlib
import enum
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator

from appliance.tunnel.model.counters import Counters, Refusal

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
    """The room for one more from an address: free, full for that address, or full for all others."""

    FREE = enum.auto()
    ONE_FULL = enum.auto()
    ALL_FULL = enum.auto()


class RateLimit:
    """A token bucket: admits ``rate`` a second in the long run, and up to ``burst`` at once after a pause.

    Args:
        clock: seconds.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left = burst
        self._at = clock()

    def admits(self) -> bool:
        """True, and one fewer is left, if one more may happen now."""
        self._fill()
        if self._left < 1:
            return False
        self._left -= 1
        return True

    @property
    def relaxed(self) -> bool:
        """True if at least half of a burst may happen now."""
        self._fill()
        return 2 * self._left >= self._burst

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(self._burst, self._left + self._rate * (now - self._at))
        self._at = now


class PendingHandshakes:
    """Counts them, and logs when a crowd comes and when it has gone, not each one.

    Args:
        expected: the peer's addresses by the settings.
        counters: count those that are not admitted.
        limit: most at once.
        limit_of_one: most at once from one address.
        clock: seconds.
    """

    def __init__(
        self,
        expected: tuple[str, ...],
        counters: Counters,
        limit: int = PENDING_MAX,
        limit_of_one: int = PENDING_OF_ONE_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._named = expected
        self._proved = ""
        self._counters = counters
        self._limit = limit
        self._limit_of_one = limit_of_one
        self._clock = clock
        self._rates = {address: self._expected_rate() for address in expected}
        self._others_rate = RateLimit(OTHERS_A_SECOND, limit, clock)
        self._present: Counter[str] = Counter()
        self._refused = 0

    def expects(self, address: str) -> bool:
        """True for an address from which the peer comes."""
        return address in self._named or (address == self._proved and bool(address))

    def proved(self, address: str) -> None:
        """Record that the peer has proved itself from ``address``."""
        if address not in self._named and address != self._proved:
            self._rates.pop(self._proved, None)
            self._rates[address] = self._expected_rate()
            self._proved = address

    def room(self, address: str) -> Room:
        """The room for one more from ``address``."""
        if self._present[address] >= self._limit_of_one:
            return Room.ONE_FULL
        return Room.FREE if self.expects(address) or self._others() < self._limit else Room.ALL_FULL

    def in_time(self, address: str) -> bool:
        """True if one more from ``address`` is within its rate, of which it takes its part then."""
        return self._rates.get(address, self._others_rate).admits()

    def refused(self, address: str) -> None:
        """Count and log one more from ``address`` that is not let in, or takes the place of another."""
        if not self._refused:
            log.warning(
                "connections refused: too many have not proved who they are; let the firewall admit the peer alone",
                extra={"fields": {"peer": address, "from_it": self._present[address], "in_all": self._present.total()}},
            )
        self._refused += 1
        self._counters.refused[Refusal.CROWD] += 1

    @contextlib.contextmanager
    def present(self, address: str) -> Iterator[None]:
        """Count one from ``address`` for as long as the block runs."""
        self.arrived(address)
        try:
            yield
        finally:
            self.left(address)

    def arrived(self, address: str) -> None:
        """Count one more from ``address``, until it has ``left``."""
        self._present[address] += 1

    def left(self, address: str) -> None:
        """Count one from ``address`` no more: it has proved itself, or is gone."""
        self._present[address] -= 1
        if not self._present[address]:
            del self._present[address]
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
        if 2 * max(self._present.values(), default=0) <= self._limit_of_one:
            log.info("room for handshakes again", extra={"fields": {"refused": self._refused}})
            self._refused = 0

    def _others(self) -> int:
        return self._present.total() - sum(self._present[address] for address in self._rates)
