"""The engine made wrong against what is played here alone; ``tests.faults.injection.mutations`` has the others."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from appliance.commands import layout_change as lanes
from appliance.commands import resumption as resume
from appliance.commands.resumption import Change
from appliance.engine.model.chunk import Chunk
from appliance.engine.read import fetcher
from appliance.engine.read.buffer import Buffer
from appliance.engine.write import copies, lane
from appliance.engine.write.lane import Lane
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.errors import ApplianceError, BrokerBusy, PartitionStopped
from appliance.kafka.client.fetch import EpochEnd
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.link.client import writer
from appliance.link.model.checkpoint import OPERATOR, Owner
from appliance.link.model.layout import Layout
from appliance.link.model.naming import Naming
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import Loss, Position


def open_transaction_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A copy is written to, whatever is open in it; what is late there becomes visible (KAFKA-14402)."""
    try_offsets = copies.try_offsets

    async def ends(
        cluster: Cluster, metadata: Metadata, partitions: Collection[Partition], _: Bound
    ) -> tuple[dict[Partition, int], dict[Partition, ApplianceError]]:
        return await try_offsets(cluster, metadata, partitions, Bound.END)

    async def nothing(_: writer.Writer, __: Mapping[Partition, int]) -> None:
        return None

    patch.setattr(copies, "try_offsets", ends)
    patch.setattr(writer.Writer, "_require_decided", nothing)


def compacted_epoch_taken_for_a_loss(patch: pytest.MonkeyPatch) -> None:
    """A source whose leader knows fewer epochs than it had is taken for one that lost what was copied."""

    def lost(buffer: Buffer, end: EpochEnd) -> PartitionStopped:
        return PartitionStopped(f"{buffer} ends at {end.offset}")

    patch.setattr(fetcher, "at_divergence", lost)


def commit_done_again_elsewhere(patch: pytest.MonkeyPatch) -> None:
    """A commit of which a coordinator that was deposed says "not I" is done again, in the same epoch (invariant B)."""
    write = writer.Writer.write

    async def insist(self: writer.Writer, rounds: Sequence[writer.Round], remember: writer.Remember) -> None:
        try:
            await write(self, rounds, remember)
        except BrokerBusy as error:
            if error.code != "NOT_COORDINATOR":
                raise
            self.cluster.forget_coordinator(self.producer.transactional_id)
            await write(self, rounds, remember)

    patch.setattr(writer.Writer, "write", insist)


def operator_who_decides_before_fencing(patch: pytest.MonkeyPatch) -> None:
    """The operator's command changes positions as they were when it looked, not as they are (invariants C and D)."""
    changes = resume._changes
    planned: dict[Any, Change] = {}

    def as_planned(replicas: Any, positions: Any, starts: Any, choice: Any, faults: Any) -> list[Change]:
        found = changes(replicas, positions, starts, choice, faults)
        return [planned.setdefault((id(choice), change.replica), change) for change in found]

    patch.setattr(resume, "_changes", as_planned)


def operator_who_leaves_no_gap(patch: pytest.MonkeyPatch) -> None:
    """The operator's command writes no gap down (invariant F)."""

    async def commit(taken: Lane, changes: Sequence[Change]) -> None:
        await taken.commit([], {change.replica: change.after for change in changes})

    patch.setattr(resume, "_commit", commit)


def map_that_counts_no_aborted_copies(patch: pytest.MonkeyPatch) -> None:
    """The map of offsets goes on where the copies end, whatever aborted ones lie between (invariant L)."""
    copied_tail = lane.copied_tail

    def unbroken(
        before: Position, chunks: Sequence[Chunk], begin: int, end: int, begins: Sequence[int] = ()
    ) -> OffsetTail:
        aborted = begin - before.tail.copy_to if before.tail else 0
        return copied_tail(before, chunks, begin - aborted, end - aborted, begins)

    patch.setattr(lane, "copied_tail", unbroken)


def map_that_is_not_cut(patch: pytest.MonkeyPatch) -> None:
    """What a copy has lost stays in its map of offsets (invariant L)."""

    def stop_shortened(self: Position, reason: str, now: int, _: Loss) -> Position:
        return self.stop(reason, now)

    patch.setattr(Position, "stop_shortened", stop_shortened)


def state_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A lane copies whatever its checkpoint says (invariant M)."""
    patch.setattr(LanePartitions, "_is_active", lambda *_: True)


def state_written_unfenced(patch: pytest.MonkeyPatch) -> None:
    """A command writes states beside the lanes, which go on as they were (invariant M)."""
    take = Lane.__init__

    def beside(
        self: Lane, index: int, destination: Cluster, naming: Naming, owner: Owner, timeout: float, *further: Any
    ) -> None:
        take(self, index, destination, naming, owner, timeout, *further)
        if owner.run == OPERATOR:
            self.transactional_id += "-operator"

    patch.setattr(Lane, "__init__", beside)


def layout_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A lane goes on as it was assigned, whatever layout its partition is of (invariant B)."""
    patch.setattr(Lane, "require_layout", lambda _: None)


def layout_read_back_at_once(patch: pytest.MonkeyPatch) -> None:
    """The segments of the maps are deleted by the layout that is seen right after its commit."""
    drop = lanes._Change._drop_segments

    async def by_what_is_seen(self: lanes._Change, _: Layout) -> None:
        await drop(self, lanes.link_of(await self._writer.peek()).layout)

    patch.setattr(lanes._Change, "_drop_segments", by_what_is_seen)


MUTATIONS = {
    "an open transaction overlooked": open_transaction_overlooked,
    "a compacted epoch taken for a loss": compacted_epoch_taken_for_a_loss,
    "a commit done again where another coordinates": commit_done_again_elsewhere,
    "an operator who decides before fencing": operator_who_decides_before_fencing,
    "an operator who leaves no gap": operator_who_leaves_no_gap,
    "a map that counts no aborted copies": map_that_counts_no_aborted_copies,
    "a map that is not cut where its copy was": map_that_is_not_cut,
    "a state overlooked": state_overlooked,
    "a state written without fencing": state_written_unfenced,
    "a lane of another layout that goes on": layout_overlooked,
    "a layout read back before its markers": layout_read_back_at_once,
}
