"""A circuit breaker for the dial to the tunnel's server, with exponential backoff and jitter; pure.

    state     admits                      success   failure
    CLOSED    every try                   CLOSED    OPEN, delay starts again at the first one
    OPEN      none before the deadline,   CLOSED    OPEN, unchanged: an attempt from before it opened
              then one: TRYING
    TRYING    no other                    CLOSED    OPEN, with the next delay

One attempt at a time while the server is away: when a firewall drops packets in silence, an attempt hangs until its
deadline, and every client that is let through hangs with it.
"""

import enum
from collections.abc import Callable

FIRST_DELAY = 0.25
"""First pause, in seconds."""
LONGEST_DELAY = 5.0
"""Longest pause, in seconds; pauses double up to it. A returned server is noticed after it at the latest."""


class BreakerState(enum.Enum):
    """The tries that the breaker admits."""

    CLOSED = enum.auto()
    OPEN = enum.auto()
    TRYING = enum.auto()


class Breaker:
    """Admits or refuses tries.

    ``jitter`` is a random number from 0 to 1 at each call, so that several tunnels do not come back in step.
    """

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self.state = BreakerState.CLOSED
        self._delay = FIRST_DELAY
        self._until = 0.0

    def admits(self, now: float) -> bool:
        """True if a try is admitted at ``now`` (seconds); then, ``succeeded`` or ``failed`` has to follow."""
        if self.state is BreakerState.OPEN and now >= self._until:
            self.state = BreakerState.TRYING
            return True
        return self.state is BreakerState.CLOSED

    def succeeded(self) -> None:
        """Record that the server has answered."""
        self.state = BreakerState.CLOSED
        self._delay = FIRST_DELAY

    def failed(self, now: float) -> None:
        """Record that the server was not reached at ``now``."""
        if self.state is BreakerState.OPEN:
            return
        self.state = BreakerState.OPEN
        self._until = now + self._delay * (1 + self._jitter()) / 2
        self._delay = min(2 * self._delay, LONGEST_DELAY)
