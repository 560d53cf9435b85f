"""The number of compared source offsets, as the progress bar shows it."""

from collections.abc import Callable, Collection

from appliance.kafka.protocol.metadata import Partition
from appliance.verify.work import Job, offsets_of

Progress = Callable[[int, int], None]
"""A callback with the number of compared source offsets, and their total."""


class Tally:
    """Tells ``progress`` how much of the jobs is compared."""

    def __init__(self, jobs: Collection[Job], progress: Progress) -> None:
        self._done: dict[tuple[Partition, int], int] = {}
        self._total = offsets_of(jobs)
        self._progress = progress

    def reached(self, job: Job, offset: int) -> None:
        """A job has been compared up to this source offset; a partition may be verified again."""
        self._done[job.replica.source, job.source.start] = min(offset, job.source.end) - job.source.start
        self._progress(min(sum(self._done.values()), self._total), self._total)
