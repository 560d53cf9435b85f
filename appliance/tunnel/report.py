"""One log line for each change of state, not for each connection: a Kafka client tries again many times a second."""

import logging
from collections.abc import Sequence

from appliance.errors import ApplianceError

log = logging.getLogger("appliance.tunnel")

Lines = Sequence[tuple[type[ApplianceError], str]]
"""The line for an error: that of the first class that it is an instance of."""

_SUBJECTS_MAX = 1000


class Report:
    """Says what a subject (the server, a target, a peer) suffers from, when that changes.

    Args:
        kind: what the subjects are, the name of their field in the log.
        lines: what to say, naming what to change.
        cured: what to say when a subject that suffered no longer does; nothing is said of the healthy.
    """

    def __init__(self, kind: str, lines: Lines, cured: str) -> None:
        self._kind = kind
        self._lines = lines
        self._cured = cured
        self._suffering: dict[str, str] = {}

    def failed(self, subject: str, error: ApplianceError) -> None:
        """``subject`` suffers from ``error``."""
        line = next((line for kind, line in self._lines if isinstance(error, kind)), "tunnel connection refused")
        if self._suffering.pop(subject, None) != line:
            log.warning(line, extra={"fields": {self._kind: subject, "cause": str(error)}})
        self._suffering[subject] = line
        if len(self._suffering) > _SUBJECTS_MAX:
            del self._suffering[next(iter(self._suffering))]

    def succeeded(self, subject: str) -> None:
        """``subject`` is well."""
        if self._suffering.pop(subject, None):
            log.info(self._cured, extra={"fields": {self._kind: subject}})
