"""The transactions by which a link's layout is changed, and what is read for that.

All is written with one transactional id, so that of two such changes the later one fences the other.
"""

import asyncio
import logging
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from appliance.clock import now_ms
from appliance.driver.model.link_facts import is_left_by_a_replicator
from appliance.engine.write.lane import Lane
from appliance.errors import ApplianceError, BrokerBusy, LinkRefused
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.topics import grow_topics, require_led
from appliance.kafka.client.transactions import init_producer_id
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.client.checkpoint_log import peek_checkpoints
from appliance.link.client.offset_maps import segment_records
from appliance.link.client.retry import is_loading, is_passing, retry_while_busy
from appliance.link.client.writer import Writer
from appliance.link.model.checkpoint import OPERATOR, LaneCheckpoint, LinkRecord, Owner
from appliance.link.model.lane_moves import Segments, layout_records, misplaced_segments, next_number
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.naming import Naming

log = logging.getLogger("appliance.replicator")

_FENCED_AT_ONCE = 16
_SEGMENTS_A_COMMIT = 256
_UNFINISHED = "a replicator has left its change unfinished"


@dataclass(slots=True)
class LanesWriter:
    """The topics of positions and maps of one link, for one ``change``, which it names; ``timeout`` is in seconds."""

    destination: Cluster
    naming: Naming
    timeout: float
    change: str
    _generation: int = 0
    _writer: Writer = field(init=False)

    async def take_id(self) -> None:
        """Fence any other such change, and end its transaction."""
        destination, naming = self.destination, self.naming

        async def take() -> Writer:
            destination.forget_coordinator(naming.lanes_id)
            coordinator = await destination.coordinator(naming.lanes_id)
            producer = await init_producer_id(coordinator, naming.lanes_id, self.timeout)
            metadata = await destination.metadata([self.naming.positions_topic, self.naming.offsets_topic])
            return Writer(destination, producer, Partition(self.naming.positions_topic, 0), metadata, self.timeout)

        self._writer = await retry_while_busy(take, is_loading)

    async def peek(self) -> list[LaneCheckpoint]:
        """The checkpoints of all lanes' partitions, which may be out of date."""
        partitions = self._partitions(self.naming.positions_topic)
        checkpoints = self._whole(await peek_checkpoints(self.destination, self.naming.positions_topic, partitions))
        self._generation = max((each.owner.generation for each in checkpoints if each.owner), default=0)
        return checkpoints

    def _whole(self, checkpoints: list[LaneCheckpoint]) -> list[LaneCheckpoint]:
        """The same; a broker that lags may not show all partitions of a topic that has just grown."""
        if not checkpoints or len(checkpoints) < link_of(checkpoints).partitions:
            raise BrokerBusy(f"{self.naming.positions_topic} is not shown whole", "LEADER_NOT_AVAILABLE")
        return checkpoints

    def _partitions(self, name: str) -> int:
        topic = self._writer.metadata.topics.get(name)
        return len(topic.leaders) if topic else 0

    async def grow(self, lanes: int) -> ApplianceError | None:
        """Give the topics of positions and maps as many partitions as there will be lanes; none is ever removed.

        Returns the error after which trying again is useless.
        """
        destination = self.destination
        names = [name for name in (self.naming.positions_topic, self.naming.offsets_topic) if self._partitions(name)]
        wanted = {name: lanes for name in names if self._partitions(name) < lanes}
        failures = await grow_topics(destination, wanted) if wanted else {}
        for error in failures.values():
            if error.retriable:
                raise error
        least = {name: self._partitions(name) if name in failures else lanes for name in names}
        self._writer.learn(await retry_while_busy(partial(require_led, destination, least)))
        return next(iter(failures.values()), None)

    async def fence(self) -> list[LaneCheckpoint]:
        """Fence every lane, and read its checkpoint."""
        at_once = asyncio.Semaphore(_FENCED_AT_ONCE)

        async def fence(index: int) -> LaneCheckpoint:
            async with at_once:
                return await self.fenced(index)

        lanes = range(self._partitions(self.naming.positions_topic))
        fencing = [asyncio.create_task(fence(index), name=f"fence-{index}") for index in lanes]
        try:
            return self._whole(await asyncio.gather(*fencing))
        finally:
            for task in fencing:
                task.cancel()

    async def fenced(self, index: int) -> LaneCheckpoint:
        """The checkpoint of a lane, once its owner is fenced."""

        async def start() -> LaneCheckpoint:
            lane = Lane(index, self.destination, self.naming, self.owner(), self.timeout, None)
            await lane.start()
            return lane.checkpoint

        return await retry_while_busy(start, is_passing)

    async def segments(self) -> list[Segments]:
        """The segments of the maps in each lane's partition."""
        partitions = [
            Partition(self.naming.offsets_topic, lane) for lane in range(self._partitions(self.naming.offsets_topic))
        ]
        read = (retry_while_busy(partial(segment_records, self.destination, each)) for each in partitions)
        return await asyncio.gather(*read)

    async def write_segments(self, records: Mapping[int, Sequence[Record]]) -> None:
        """Write records into the lanes' partitions of the topic of the maps, in transactions of a bounded size."""
        for lane, own in records.items():
            for at in range(0, len(own), _SEGMENTS_A_COMMIT):
                await self._write(self.naming.offsets_topic, {lane: own[at : at + _SEGMENTS_A_COMMIT]})

    async def write(self, records: Mapping[int, Sequence[Record]]) -> None:
        """Write records into the lanes' partitions of the positions topic, in one transaction."""
        await self._write(self.naming.positions_topic, records)

    async def _write(self, topic: str, records: Mapping[int, Sequence[Record]]) -> None:
        remembered = {Partition(topic, lane): own for lane, own in records.items()}
        await self._writer.write((), lambda *_: remembered)

    def owner(self) -> Owner:
        """The name that it leaves in the lanes: a fenced replicator knows by it that its lanes are still its own."""
        return Owner(OPERATOR, self.change, socket.gethostname(), now_ms(), self._generation)


def link_of(checkpoints: Sequence[LaneCheckpoint]) -> LinkRecord:
    """The link record; LinkRefused if there is none."""
    link = checkpoints[0].link
    if link is None:
        raise LinkRefused("the link record is gone: see `appliance status`")
    return link


async def end_unfinished(destination: Cluster, naming: Naming, timeout: float) -> None:
    """End a change that a replicator of an older release has begun by itself, with the layout as it was.

    An operator's change is ended by the operator, who is there; one that was begun meanwhile is left alone. After a
    kill anywhere, the same again. Fenced if a command, or another start, does something about it.
    """
    writer = LanesWriter(destination, naming, timeout, uuid.uuid4().hex)
    await writer.take_id()
    await writer.peek()
    checkpoints = await writer.fence()
    if not is_left_by_a_replicator(checkpoints):
        return
    link = link_of(checkpoints)
    layout = replace(link.layout, number=next_number(checkpoints, link))
    await writer.write_segments(misplaced_segments(await writer.segments(), layout, now_ms()))
    record = LayoutRecord(
        layout.number, layout.lanes, now_ms(), f"{naming.replicator}@{socket.gethostname()}", _UNFINISHED
    )
    kept = link.laid_out(layout, len(checkpoints))
    await writer.write(layout_records(checkpoints, kept, record, writer.owner(), record.since))
    await writer.take_id()  # a commit is answered before its markers are written, and a new epoch after that
    log.info("lanes kept", extra={"fields": {"lanes": layout.lanes, "why": _UNFINISHED}})
