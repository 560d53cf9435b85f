"""The progress of the audit's writer, for the status of the replicator that runs it."""

from dataclasses import dataclass


@dataclass(slots=True)
class AuditProgress:
    """Times in milliseconds: commits before ``written_to`` are in the files, or came before the writer's start.

    ``problem`` is the reason that nothing can be written now, empty if there is none.
    """

    path: str
    written_to: int = -1
    problem: str = ""
