"""What a process cannot do now, told once it fails and once more when it is over."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from appliance.errors import ApplianceError

Notice = Callable[[str, ApplianceError | None], None]
"""Told what is wrong with what; with an error of None, that it is over."""

log = logging.getLogger("appliance.replicator")


@dataclass(slots=True)
class Failing:
    """The subjects that fail now."""

    notice: Notice
    _subjects: set[str] = field(default_factory=set)

    def tell(self, subject: str, error: ApplianceError) -> None:
        """It fails, or fails again."""
        self._subjects.add(subject)
        self.notice(subject, error)

    def over(self, subject: str) -> None:
        """It does what it should."""
        if subject in self._subjects:
            self._subjects.discard(subject)
            self.notice(subject, None)


def unexpected(error: Exception) -> ApplianceError:
    """The error to tell when a background task ends by one that nobody foresaw; the log has where it came from."""
    text = f"unexpected {type(error).__name__}: {error}"
    log.error(text, exc_info=error)
    return ApplianceError(text)
