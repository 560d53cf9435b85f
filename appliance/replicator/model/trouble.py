"""What is wrong now, each said once when it begins and once when it is over, however often it is met."""

import logging
from dataclasses import dataclass, field

log = logging.getLogger("appliance.replicator")


@dataclass(slots=True)
class Troubles:
    """The open troubles, by what they are about."""

    _open: dict[str, str] = field(default_factory=dict)

    def tell(self, subject: str, fault: str) -> None:
        """Something is wrong with ``subject``: a line when that is new, or of another kind than before."""
        if self._open.get(subject) != fault:
            self._open[subject] = fault
            log.warning(fault, extra={"fields": {"about": subject}})

    def over(self, subject: str) -> None:
        """It is well again."""
        if self._open.pop(subject, None) is not None:
            log.info("well again", extra={"fields": {"about": subject}})

    def forget(self, subject: str) -> None:
        """Nobody knows any more: should it be wrong still, that is told anew."""
        self._open.pop(subject, None)

    def keep(self, prefix: str, faults: dict[str, str]) -> None:
        """Of the subjects that begin with ``prefix``, just these are wrong."""
        for subject in [s for s in self._open if s.startswith(prefix) and s not in faults]:
            self.over(subject)
        for subject, fault in faults.items():
            self.tell(subject, fault)
