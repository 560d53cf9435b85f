"""When the tunnel's server is worth another try: a circuit breaker with exponential backoff and jitter; pure.

    state     admits                      success   failure
    CLOSED    everybody                   CLOSED    OPEN, delay starts again at the first one
    OPEN      nobody before the deadline, CLOSED    OPEN, unchanged: an attempt from before it opened
              then one: TRYING
    TRYING    nobody else                 CLOSED    OPEN, with the next delay

One attempt at a time while the server is away: when a firewall drops packets in silence, an attempt hangs until its
deadline, and every client that is let through hangs with it.
"""

import enum
from collections.abc import Callable

FIRST_DELAY = 0.25
"""Seconds of the first pause."""
LONGEST_DELAY = 5.0
"""Seconds that the pauses, doubling, grow to: how late a returned server is noticed, at most."""


class State(enum.Enum):
    """What the breaker lets through."""

    CLOSED = enum.auto()
    OPEN = enum.auto()
    TRYING = enum.auto()


class Breaker:
    """Decides who may try.

    Args:
        jitter: a random number from 0 to 1 at each call, so that several tunnels do not come back in step.
    """

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self.state = State.CLOSED
        self._delay = FIRST_DELAY
        self._until = 0.0

    def admits(self, now: float) -> bool:
        """Whether to try at ``now`` (seconds); if so, ``succeeded`` or ``failed`` has to follow."""
        if self.state is State.OPEN and now >= self._until:
            self.state = State.TRYING
            return True
        return self.state is State.CLOSED

    def succeeded(self) -> None:
        """The server has answered."""
        self.state = State.CLOSED
        self._delay = FIRST_DELAY

    def failed(self, now: float) -> None:
        """The server was not reached at ``now``."""
        if self.state is State.OPEN:
            return
        self.state = State.OPEN
        self._until = now + self._delay * (1 + self._jitter()) / 2
        self._delay = min(2 * self._delay, LONGEST_DELAY)
