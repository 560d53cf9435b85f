"""The ways to the clusters of an order, as the log has them: a line when one breaks, and one when it is well again.

Whoever uses a way meets its break by himself, again and again, in words of his own.
"""

from dataclasses import dataclass, field

from appliance.engine.problem_log import Notice
from appliance.errors import ApplianceError, Unreachable


@dataclass(eq=False)
class Way:
    """The way to the cluster ``name``: ``notice`` is told of it once for all that do not reach the cluster.

    Their other problems are told each with its subject.
    """

    name: str
    notice: Notice
    _cut: set[str] = field(init=False, default_factory=set)
    _open: set[str] = field(init=False, default_factory=set)
    """The subjects that do not reach it, and those with another problem."""

    def tell(self, subject: str, error: ApplianceError | None) -> None:
        """Note the problem of a subject, or that it has none any more."""
        was_cut = bool(self._cut)
        if isinstance(error, Unreachable):
            self._cut.add(subject)
            if not was_cut:
                self.notice(f"way to {self.name}", error)
            return
        self._cut.discard(subject)
        if was_cut and not self._cut:
            self.notice(f"way to {self.name}", None)
        if error is not None or subject in self._open:
            self.notice(f"{self.name}: {subject}", error)
            (self._open.discard if error is None else self._open.add)(subject)
