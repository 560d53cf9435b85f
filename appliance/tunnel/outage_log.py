"""A log of outages: one line for each change of state, because a Kafka client retries many times a second.

A stranger can change the state at will, by failing in another way or from another address each time. To protect the
disk, the lines a minute are limited, and the next line after a gap gives the number of suppressed ones.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence

from appliance.clock import monotonic
from appliance.errors import ApplianceError

log = logging.getLogger("appliance.tunnel")

Lines = Sequence[tuple[type[ApplianceError], str]]
"""The line for an error: that of the first class that it is an instance of."""

_SUBJECTS_MAX = 1000

LINES_A_MINUTE = 60
"""Most lines of one outage log."""


class OutageLog:
    """Logs the fault of a subject (the server, a target, a peer) when it changes.

    Args:
        kind: the name of the subjects' field in the log.
        lines: the lines by class of error, each with the change to make.
        cured: the line when a subject with a fault has none any more.
        clock: seconds.
    """

    def __init__(self, kind: str, lines: Lines, cured: str, clock: Callable[[], float] = monotonic) -> None:
        self._kind = kind
        self._lines = lines
        self._cured = cured
        self._clock = clock
        self._faults: dict[str, str] = {}
        self._logged: deque[float] = deque()
        self._left_out = 0

    def failed(self, subject: str, error: ApplianceError) -> None:
        """Record that ``subject`` has failed with ``error``."""
        line = next((line for kind, line in self._lines if isinstance(error, kind)), "tunnel connection refused")
        if self._faults.pop(subject, None) != line:
            self._log(logging.WARNING, line, {self._kind: subject, "cause": str(error)})
        self._faults[subject] = line
        if len(self._faults) > _SUBJECTS_MAX:
            del self._faults[next(iter(self._faults))]

    def succeeded(self, subject: str) -> None:
        """Record that ``subject`` has no fault."""
        if self._faults.pop(subject, None):
            self._log(logging.INFO, self._cured, {self._kind: subject})

    def _log(self, level: int, line: str, fields: dict[str, object]) -> None:
        now = self._clock()
        while self._logged and self._logged[0] <= now - 60:
            self._logged.popleft()
        if len(self._logged) >= LINES_A_MINUTE:
            self._left_out += 1
            return
        self._logged.append(now)
        left_out = {"left_out": self._left_out} if self._left_out else {}
        log.log(level, line, extra={"fields": {**fields, **left_out}})
        self._left_out = 0
