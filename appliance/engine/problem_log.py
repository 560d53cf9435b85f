"""Open problems: each is logged when it begins or changes, and when it is over, however often it is met.

One that comes back soon after its end is the same problem: a lane, a task or a Spark job that fails again and again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from appliance.errors import ApplianceError
from appliance.link.model.problems import Fault

log = logging.getLogger("appliance.replicator")

_RECURS_MS = 120_000
"""Longest time between the end of a problem and its next beginning for which it is still the same."""

_RETRY = 1.0
"""Pause before a question is asked again, in seconds."""

Result = TypeVar("Result")

Notice = Callable[[str, ApplianceError | None], None]
"""Called with a subject and its current problem; with None when it is over."""


def to_log(subject: str, error: ApplianceError | None) -> None:
    """Log it, for the operator."""
    fields = {"fields": {"about": subject}}
    if error is None:
        log.info("well again", extra=fields)
    else:
        log.warning(str(error), extra=fields)


@dataclass(slots=True)
class ProblemLog:
    """The ``open`` problems, by subject; ``notice`` is called with each change.

    ``clock`` is in milliseconds; whoever shows no beginnings needs none.
    """

    notice: Notice = to_log
    open: dict[str, Fault] = field(default_factory=dict)
    clock: Callable[[], int] = lambda: 0
    _ended: dict[str, tuple[int, int]] = field(default_factory=dict)
    """When former problems began and ended."""

    def tell(self, subject: str, error: ApplianceError) -> None:
        """Note that a subject has a problem, or still has it."""
        fault = self.open.get(subject)
        if fault is None or fault.reason != str(error):
            self.open[subject] = Fault(str(error), fault.since if fault else self._began(subject))
            self.notice(subject, error)

    def _began(self, subject: str) -> int:
        now = self.clock()
        since, ended = self._ended.pop(subject, (now, now))
        return since if now - ended <= _RECURS_MS else now

    def over(self, subject: str) -> None:
        """Note that a subject has no problem any more, if it had one."""
        if self._end(subject):
            self.notice(subject, None)

    def note(self, subject: str, error: ApplianceError | None) -> None:
        """Tell of a subject's problem, or of its end."""
        if error is None:
            self.over(subject)
        else:
            self.tell(subject, error)

    def forget(self, subject: str) -> None:
        """Drop a problem whose state is unknown from now on: if it continues, it is logged again."""
        self._end(subject)

    def _end(self, subject: str) -> bool:
        fault = self.open.pop(subject, None)
        if fault is not None:
            self._ended[subject] = (fault.since, self.clock())
        return fault is not None

    def keep(self, prefix: str, problems: Mapping[str, ApplianceError]) -> None:
        """Note that among the subjects that begin with ``prefix`` only these have a problem."""
        for subject in [s for s in self.open if s.startswith(prefix) and s not in problems]:
            self.over(subject)
        for subject, error in problems.items():
            self.tell(subject, error)


def log_defect(error: Exception) -> ApplianceError:
    """Log a defect of ours with its traceback; return the error to report."""
    text = f"unexpected {type(error).__name__}: {error}"
    log.error(text, exc_info=error)
    return ApplianceError(text)


async def until_answered(ask: Callable[[], Awaitable[Result]], about: str, problems: ProblemLog) -> Result:
    """Ask again and again, until there is an answer or an error that makes retries useless."""
    while True:
        try:
            answer = await ask()
        except ApplianceError as error:
            if not error.retriable:
                raise
            problems.tell(about, error)
            await asyncio.sleep(_RETRY)
        else:
            problems.over(about)
            return answer
