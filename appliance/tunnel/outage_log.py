"""One log line for each change of state, not for each connection: a Kafka client tries again many times a second.

Who changes state at will, as a stranger can by failing in another way each time or from another address, does not fill
the disk either: there are so many lines a minute, and the next one after a gap says how many it stands for.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence

from appliance.errors import ApplianceError

log = logging.getLogger("appliance.tunnel")

Lines = Sequence[tuple[type[ApplianceError], str]]
"""The line for an error: that of the first class that it is an instance of."""

_SUBJECTS_MAX = 1000

LINES_A_MINUTE = 60
"""Of one report, at most."""


class OutageLog:
    """Says what a subject (the server, a target, a peer) suffers from, when that changes.

    Args:
        kind: what the subjects are, the name of their field in the log.
        lines: what to say, naming what to change.
        cured: what to say when a subject that suffered no longer does; nothing is said of the healthy.
        clock: seconds.
    """

    def __init__(self, kind: str, lines: Lines, cured: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._kind = kind
        self._lines = lines
        self._cured = cured
        self._clock = clock
        self._suffering: dict[str, str] = {}
        self._told: deque[float] = deque()
        self._untold = 0

    def failed(self, subject: str, error: ApplianceError) -> None:
        """``subject`` suffers from ``error``."""
        line = next((line for kind, line in self._lines if isinstance(error, kind)), "tunnel connection refused")
        if self._suffering.pop(subject, None) != line:
            self._tell(logging.WARNING, line, {self._kind: subject, "cause": str(error)})
        self._suffering[subject] = line
        if len(self._suffering) > _SUBJECTS_MAX:
            del self._suffering[next(iter(self._suffering))]

    def succeeded(self, subject: str) -> None:
        """``subject`` is well."""
        if self._suffering.pop(subject, None):
            self._tell(logging.INFO, self._cured, {self._kind: subject})

    def _tell(self, level: int, line: str, fields: dict[str, object]) -> None:
        now = self._clock()
        while self._told and self._told[0] <= now - 60:
            self._told.popleft()
        if len(self._told) >= LINES_A_MINUTE:
            self._untold += 1
            return
        self._told.append(now)
        left_out = {"left_out": self._untold} if self._untold else {}
        log.log(level, line, extra={"fields": {**fields, **left_out}})
        self._untold = 0
