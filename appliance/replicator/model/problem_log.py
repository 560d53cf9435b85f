"""Open problems: each is told when it begins or changes, and when it is over, however often it is met."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from appliance.errors import ApplianceError

log = logging.getLogger("appliance.replicator")

Notice = Callable[[str, ApplianceError | None], None]
"""Told the problem that a subject has now; with None, that it is over."""


def to_log(subject: str, error: ApplianceError | None) -> None:
    """Tell the log, and so the operator."""
    fields = {"fields": {"about": subject}}
    if error is None:
        log.info("well again", extra=fields)
    else:
        log.warning(str(error), extra=fields)


@dataclass(slots=True)
class ProblemLog:
    """The open problems, by subject; ``notice`` is told each change."""

    notice: Notice = to_log
    _open: dict[str, str] = field(default_factory=dict)

    def tell(self, subject: str, error: ApplianceError) -> None:
        """Note that a subject has a problem, or still has it."""
        if self._open.get(subject) != str(error):
            self._open[subject] = str(error)
            self.notice(subject, error)

    def over(self, subject: str) -> None:
        """Note that a subject has no problem any more, if it had one."""
        if self._open.pop(subject, None) is not None:
            self.notice(subject, None)

    def forget(self, subject: str) -> None:
        """Drop a problem whose state is unknown from now on: if it goes on, it is told anew."""
        self._open.pop(subject, None)

    def keep(self, prefix: str, problems: Mapping[str, ApplianceError]) -> None:
        """Note that of the subjects that begin with ``prefix`` these have a problem, and no others."""
        for subject in [s for s in self._open if s.startswith(prefix) and s not in problems]:
            self.over(subject)
        for subject, error in problems.items():
            self.tell(subject, error)


def unexpected(error: Exception) -> ApplianceError:
    """Log a defect of ours with where it came from; return the error to tell."""
    text = f"unexpected {type(error).__name__}: {error}"
    log.error(text, exc_info=error)
    return ApplianceError(text)
