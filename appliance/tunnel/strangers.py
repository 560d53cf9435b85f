"""Those who have connected but not proved who they are: how many there may be at once.

They are counted apart from the connections that are carried, so that whoever holds thousands of idle connections takes
no slot from a peer that proves itself. Each address has a share, and all of them together have a limit, outside of
which the expected peer's own share lies: strangers from many addresses cannot take it. Over a limit a connection is
reset at once, before TLS is made for it.

How many may come in a second is limited, too, for the expected peer's address and for all others together: what a
connection costs that is closed at its first bytes is little, and bounded.

The client never comes near its share: it shakes hands on ``HANDSHAKES_AT_ONCE`` connections at a time.
"""

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator

from appliance.tunnel.rate import RateLimit
from appliance.tunnel.tally import Refusal, Tally

log = logging.getLogger("appliance.tunnel")

STRANGERS_OF_ONE_MAX = 256
"""Connections from one address, at most."""

STRANGERS_MAX = 1024
"""Connections from all addresses but the expected peer's, at most."""

HANDSHAKES_AT_ONCE = 64
"""Handshakes that a client has under way, at most."""

EXPECTED_A_SECOND, OTHERS_A_SECOND = 2000.0, 500.0
"""Connections a second from the expected peer's address, and from all others together."""


class Strangers:
    """Counts them, and tells the log when a crowd comes and when it has gone, not of each one.

    Args:
        expected: the address from which the peer comes, as the settings know it.
        tally: where those that are not admitted are counted.
        limit: how many there may be.
        limit_of_one: how many there may be from one address.
        clock: seconds.
    """

    def __init__(
        self,
        expected: str,
        tally: Tally,
        limit: int = STRANGERS_MAX,
        limit_of_one: int = STRANGERS_OF_ONE_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._expected = expected
        self._tally = tally
        self._limit = limit
        self._limit_of_one = limit_of_one
        self._expected_rate = RateLimit(EXPECTED_A_SECOND, EXPECTED_A_SECOND, clock)
        self._others_rate = RateLimit(OTHERS_A_SECOND, limit, clock)
        self._present: Counter[str] = Counter()
        self._refused = 0

    def admits(self, address: str) -> bool:
        """Whether there is room for one more from ``address``."""
        room = address == self._expected or self._others() < self._limit
        rate = self._expected_rate if address == self._expected else self._others_rate
        if room and self._present[address] < self._limit_of_one and rate.admits():
            return True
        if not self._refused:
            log.warning(
                "connections refused: too many have not proved who they are; let the firewall admit the peer alone",
                extra={"fields": {"peer": address, "from_it": self._present[address], "in_all": self._present.total()}},
            )
        self._refused += 1
        self._tally.refused[Refusal.CROWD] += 1
        return False

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
        """One from ``address`` has proved who it is, or is gone."""
        self._present[address] -= 1
        self._present += Counter()  # forgets those who are gone
        self._settle()

    def _settle(self) -> None:
        """The crowd has gone when half of the room is free: at the limit itself it would come and go at every turn."""
        if not self._refused or 2 * self._others() > self._limit:
            return
        if not (self._expected_rate.relaxed and self._others_rate.relaxed):
            return
        if 2 * max(self._present.values(), default=0) <= self._limit_of_one:
            log.info("room for handshakes again", extra={"fields": {"refused": self._refused}})
            self._refused = 0

    def _others(self) -> int:
        return self._present.total() - self._present[self._expected]
