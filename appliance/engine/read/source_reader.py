"""The source's reader in a Spark task: a Fetch in flight to every leader, and a bounded buffer a partition.

Reading runs ahead of writing by the buffers' size, so that fetching and committing overlap.
"""

from collections.abc import Iterable

from appliance.engine.model.chunk import Chunk
from appliance.engine.problem_log import Notice, ProblemLog
from appliance.engine.read.buffer import Buffer, Limits, ReadyQueue
from appliance.engine.read.buffer_budget import BufferBudget
from appliance.engine.read.router import Router
from appliance.errors import PartitionStopped
from appliance.kafka.client.interface import Cluster
from appliance.link.client.origins import Origins
from appliance.link.model.replicas import Replica


class SourceReader:
    """The buffers of the partitions of one process's lanes, filled while its event loop runs.

    With ``origins``, what a link wrote at the source is left out.
    """

    def __init__(self, source: Cluster, notice: Notice, origins: Origins | None = None) -> None:
        self._origins = origins
        self._problems = ProblemLog(notice)
        self.budget = BufferBudget()
        self.router = Router(source, self.budget, self._problems, origins)

    async def close(self) -> None:
        """End all reading."""
        await self.router.close()

    def bound(self, bytes_per_second: int) -> None:
        """Bound the bytes read in a second; 0 is unbounded."""
        self.budget.allowance.bound(bytes_per_second)

    def read(self, replica: Replica, position: int, epoch: int, ready: ReadyQueue, limits: Limits) -> None:
        """Read a partition from ``position`` on; drops its buffer and the answer in flight.

        ``epoch`` is the leader epoch of the batch before the position, -1 when unknown. ``ready`` is the lane's queue
        of chunks to ``take``, or of partitions in ``stopped``.
        """
        self.forget([replica])
        self.router.add(Buffer(replica, position, epoch, ready, limits, origins=self._origins))

    def forget(self, replicas: Iterable[Replica]) -> None:
        """Stop reading these partitions."""
        for replica in replicas:
            if buffer := self.router.remove(replica.log):
                buffer.ready.forget(buffer)
                self.budget.bytes -= buffer.bytes
                self._problems.over(buffer.subject)
        self.router.has_room()

    def account(self, chunk: Chunk) -> None:
        """Note that a chunk was taken from its buffer."""
        self.budget.bytes -= chunk.bytes
        self.router.has_room()

    def take(self, ready: ReadyQueue, limit: int) -> list[Chunk]:
        """Take a lane's ready chunks, up to about ``limit`` bytes, of each partition in turn."""
        chunks = ready.take(limit)
        self.budget.bytes -= sum(chunk.bytes for chunk in chunks)
        if chunks:
            self.router.has_room()
        return chunks

    def full(self, ready: ReadyQueue) -> bool:
        """True when a buffer of the lane is so full that its partition is not fetched until some is taken."""
        return not all(map(self.budget.room, ready.buffers_with_chunks))

    def take_stops(self, ready: ReadyQueue) -> list[tuple[Replica, PartitionStopped]]:
        """A lane's partitions that can be read no further and whose chunks are all taken; each once."""
        stops = ready.take_stops()
        self.forget(replica for replica, _ in stops)
        return stops
