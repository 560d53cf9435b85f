"""Open problems: each is logged when it begins or changes, and when it is over, however often it is met."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from appliance.errors import ApplianceError

log = logging.getLogger("appliance.replicator")

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
    """The open problems, by subject; ``notice`` is called with each change."""

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
        """Drop a problem whose state is unknown from now on: if it continues, it is logged again."""
        self._open.pop(subject, None)

    def keep(self, prefix: str, problems: Mapping[str, ApplianceError]) -> None:
        """Note that among the subjects that begin with ``prefix`` only these have a problem."""
        for subject in [s for s in self._open if s.startswith(prefix) and s not in problems]:
            self.over(subject)
        for subject, error in problems.items():
            self.tell(subject, error)


def unexpected(error: Exception) -> ApplianceError:
    """Log a defect of ours with its traceback; return the error to report."""
    text = f"unexpected {type(error).__name__}: {error}"
    log.error(text, exc_info=error)
    return ApplianceError(text)
