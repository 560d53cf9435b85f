"""The reports of the tasks: problems and sums go to the log; a lane that another replicator has ends the run."""

import asyncio
import dataclasses
import logging

from appliance.errors import ApplianceError, Fenced, Superseded
from appliance.replicator.model.problem_log import ProblemLog
from appliance.replicator.spark.assignment import Copied, Report

log = logging.getLogger("appliance.replicator")


class TaskReports:
    """``fenced`` is set, and ``fenced_from`` says what was taken by whom, once another replicator has a lane."""

    def __init__(self, problems: ProblemLog) -> None:
        self.fenced = asyncio.Event()
        self.fenced_from = ""
        self._problems = problems
        self._awaited: set[int] = set()
        self._subjects: dict[int, set[str]] = {}

    def new_job(self, tasks: int) -> None:
        """A job of so many tasks begins."""
        for task in list(self._subjects):
            self._forget(task)
        self._awaited = set(range(tasks))

    def begun(self, task: int) -> None:
        """A try of a task begins: the problems of the one before it are nobody's any more."""
        self._forget(task)
        self._awaited.discard(task)
        if not self._awaited:
            self._problems.over("spark")

    def heard(self, task: int, report: Report) -> None:
        """A task has said something."""
        if isinstance(report, Copied):
            log.info("copied", extra={"fields": {"task": task, **dataclasses.asdict(report)}})
        elif report.kind == Fenced.__name__:
            self.fenced_from = report.fault
            self.fenced.set()
        elif report.kind == Superseded.__name__:
            log.warning(report.fault)  # nothing that goes on being wrong: one of the two tasks ends
        elif report.fault:
            self._subjects.setdefault(task, set()).add(report.subject)
            self._problems.tell(report.subject, ApplianceError(report.fault))
        else:
            self._subjects.setdefault(task, set()).discard(report.subject)
            self._problems.over(report.subject)

    def _forget(self, task: int) -> None:
        for subject in self._subjects.pop(task, ()):
            self._problems.forget(subject)
