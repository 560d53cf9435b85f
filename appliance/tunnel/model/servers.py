"""The health of each source VM, and the order in which a new connection tries them; pure.

    condition    tries admitted                success    failure                    what it carries, if another is WELL
    WELL         every one                     WELL       FAILED, SILENT, DRAINING   goes on
    FAILED       none during a pause, then     WELL       the same, and the next     ends at the second failure
    SILENT       one, and no other until its   WELL       pause                      ends
    DRAINING     outcome                       WELL                                  ends

One try at a time while the server is away: when a firewall drops packets in silence, an attempt hangs until its
deadline, and every client that is let through hangs with it. Of several servers, polls end the pauses too. A connection
leaves one its head start, then tries the next as well (RFC 8305); for some seconds the slower one comes after others.
"""

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from appliance.errors import ApplianceError, Draining, OutOfDescriptors, TimedOut, Unreachable

FIRST_DELAY, LONGEST_DELAY = 0.25, 5.0
"""First and longest pause, in seconds; they double in between. A returned server is noticed after it at the latest."""

POLL_SECONDS, SILENCE_SECONDS = 1.0, 6.0
"""Pause between two polls, and the longest wait for an answer, in seconds: a silent server is noticed after both."""

HEAD_START, HEAD_START_MAX = 0.5, 1.5
"""Bounds of the seconds that a connection leaves to one server before it tries the next, too: twice its last try."""


class Condition(enum.StrEnum):
    """The condition of a source VM, as the last try or poll found it."""

    UNTRIED = "untried"
    WELL = "well"
    FAILED = "failed"
    SILENT = "silent"
    DRAINING = "draining"


class Server:
    """One source VM's health, ``since`` when in seconds since 1970, and both ends of each connection ``carried``.

    ``jitter`` is a random number from 0 to 1 at each call, so that several tunnels do not come back in step.
    """

    def __init__(self, name: str, jitter: Callable[[], float]) -> None:
        self.name, self.jitter = name, jitter
        self.condition, self.fault, self.since = Condition.UNTRIED, "", 0.0
        self.carried: set[tuple[Any, Any]] = set()
        self.usable = True
        self.head_start = HEAD_START
        self._trying = False
        self._delay, self._until, self._paused = FIRST_DELAY, 0.0, 0.0
        self._slower_until = 0.0

    def admits(self, now: float) -> bool:
        """True if a try is admitted at ``now`` (seconds); then its outcome has to follow."""
        if not self.usable and not self._trying and now >= self._until:
            self._trying = True
            return True
        return self.usable

    def is_slower(self, now: float) -> bool:
        """True if another one was faster lately."""
        return now < self._slower_until

    def connected(self, seconds: float) -> None:
        """Record the length of a whole try."""
        self.head_start = min(max(HEAD_START, 2 * seconds), HEAD_START_MAX)
        self._slower_until = 0.0

    def given_up(self, now: float) -> None:
        """Record that a try was given up, since another server was faster: that is no failure."""
        self._slower_until = now + LONGEST_DELAY
        if not self.usable:
            self.pause(now)

    def succeeded(self, at: float) -> None:
        """Record that it has answered; ``at`` is the time of day."""
        self.usable, self._trying, self._delay = True, False, FIRST_DELAY
        self._become(Condition.WELL, "", at)

    def pause(self, now: float) -> None:
        """Record a try at ``now`` without an outcome; one from before the pause does not lengthen it."""
        if self.usable:
            self._paused = now
        if self.usable or self._trying:
            self._until = now + self._delay * (1 + self.jitter()) / 2
            self._delay = min(2 * self._delay, LONGEST_DELAY)
        self.usable = self._trying = False

    def failed(self, error: ApplianceError, began: float, now: float, at: float) -> bool:
        """Record that a try was in vain; true if what it carries should end, where another one is well.

        A try that ``began`` before the pause tells no more than the one that began it.
        """
        gone = isinstance(error, Unreachable) and not isinstance(error, OutOfDescriptors)
        lost = gone and not self.usable and began > self._paused
        self.pause(now)
        silent = Condition.SILENT if isinstance(error, TimedOut) else Condition.FAILED
        self._become(Condition.DRAINING if isinstance(error, Draining) else silent, str(error), at)
        return lost or self.condition is not Condition.FAILED

    def _become(self, condition: Condition, fault: str, at: float) -> None:
        self.since = self.since if condition is self.condition else at
        self.condition, self.fault = condition, fault


_Server = TypeVar("_Server", bound=Server)


def in_order(servers: Sequence[_Server], clock: Callable[[], float], *, spread: bool) -> Iterator[_Server | None]:
    """The servers to try, each once, as they are needed: the usable ones first; None while the others have a pause.

    With ``spread``, the usable one with the fewest connections comes first.
    """
    now = clock()
    left = sorted(
        servers,
        key=lambda each: (
            not each.usable,
            each.is_slower(now),
            (len(each.carried), each.jitter()) if spread and each.usable else (0, 0.0),
        ),
    )
    while left:
        server = next((each for each in left if each.admits(clock())), None)
        if server:
            left.remove(server)
        yield server
