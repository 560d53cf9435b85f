"""The reports of the tasks: problems and sums go to the log; a lane taken by another replicator ends the run."""

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from appliance.clock import monotonic
from appliance.engine.control.assignment import CopySums, Report
from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError, Fenced, LayoutChanged, ProcessFailed, Superseded

log = logging.getLogger("appliance.replicator")


_SILENCE = 60.0
"""Silence after which a task counts as hanging, in seconds; a running one reports every five."""


@dataclass(slots=True)
class Ending:
    """The end of a run of the replicator of this name: ``begun`` is set with it, and with a reason if it is one."""

    replicator: str
    error: ApplianceError | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, error: ApplianceError) -> None:
        """End for this reason; the first one counts."""
        self.error = self.error or error
        self.begun.set()

    def renew(self) -> None:
        """Begin again: another run of this process may end for another reason."""
        self.error = None
        self.begun.clear()

    def fenced(self, taken: str) -> None:
        """End since another replicator has ``taken`` a lane."""
        self.end(Fenced(f"another {self.replicator} has taken {taken}: this one stops, a link has one"))


class TaskReports:
    """The reports of the running job's tasks; ``ending`` begins once another replicator has a lane.

    ``layout_changed`` is set once a lane finds that the link has another layout, and ``sql_silent`` once a job of SQL
    in flight makes no progress; ``sql_silence`` says where.
    """

    def __init__(self, problems: ProblemLog, ending: Ending, clock: Callable[[], float] = monotonic) -> None:
        self.layout_changed = asyncio.Event()
        self.sql_silent = asyncio.Event()
        self.sql_silence = ""
        self._problems = problems
        self._ending = ending
        self._awaited: set[int] = set()
        self._subjects: dict[int, set[str]] = {}
        self._clock = clock
        self._heard: dict[int, float] = {}

    def new_job(self, tasks: int) -> None:
        """Begin a job with this many tasks."""
        for task in list(self._subjects):
            self._forget(task)
        self._awaited = set(range(tasks))
        self._heard = dict.fromkeys(range(tasks), self._clock())

    def begun(self, task: int) -> None:
        """Begin a try of a task: the problems of the one before are obsolete."""
        self._forget(task)
        self._heard[task] = self._clock()
        self._awaited.discard(task)
        if not self._awaited:
            self._problems.over("spark")

    def silent(self) -> list[int]:
        """The tasks of the job that were silent for a minute: their lanes may be idle."""
        now = self._clock()
        return sorted(task for task, at in self._heard.items() if now - at > _SILENCE)

    def heard(self, task: int, report: Report) -> None:
        """Take in a task's report."""
        self._heard[task] = self._clock()
        if isinstance(report, CopySums):
            if report.partitions:
                log.info("copied", extra={"fields": {"task": task, **dataclasses.asdict(report)}})
        elif report.kind == Fenced.__name__:
            self._ending.fenced(report.fault)
        elif report.kind == LayoutChanged.__name__:
            self.layout_changed.set()
        elif report.kind == Superseded.__name__:
            log.warning(report.fault)  # not a lasting problem: one of the two tasks ends
        elif report.fault:
            if report.kind == ProcessFailed.__name__:
                self.sql_silence = report.fault
                self.sql_silent.set()
            self._subjects.setdefault(task, set()).add(report.subject)
            self._problems.tell(report.subject, ApplianceError(report.fault))
        else:
            self._subjects.setdefault(task, set()).discard(report.subject)
            if not self._has(report.subject):
                self._problems.over(report.subject)

    def _forget(self, task: int) -> None:
        for subject in self._subjects.pop(task, ()):
            if not self._has(subject):
                self._problems.forget(subject)

    def _has(self, subject: str) -> bool:
        """True when a task has that problem now: several may share it, as with a broker that is down."""
        return any(subject in subjects for subjects in self._subjects.values())
