"""The engine made wrong against what is played here alone; ``tests.faults.injection.mutations`` has the others."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from appliance.errors import ApplianceError, BrokerBusy, PartitionStopped
from appliance.kafka.client.fetch import EpochEnd
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.link.client import writer
from appliance.replicator import resume
from appliance.replicator.read import fetcher
from appliance.replicator.read.buffer import Buffer
from appliance.replicator.resume import Change
from appliance.replicator.write import copies
from appliance.replicator.write.lane import Lane


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
            self._cluster.forget_coordinator(self.producer.transactional_id)
            await write(self, rounds, remember)

    patch.setattr(writer.Writer, "write", insist)


def operator_who_decides_before_fencing(patch: pytest.MonkeyPatch) -> None:
    """The operator's command changes positions as they were when it looked, not as they are (invariants C and D)."""
    changes = resume._changes
    planned: dict[Any, Change] = {}

    def as_planned(replicas: Any, positions: Any, starts: Any, choice: Any) -> list[Change]:
        found = changes(replicas, positions, starts, choice)
        return [planned.setdefault((id(choice), change.replica), change) for change in found]

    patch.setattr(resume, "_changes", as_planned)


def operator_who_leaves_no_gap(patch: pytest.MonkeyPatch) -> None:
    """The operator's command writes no gap down (invariant F)."""

    async def commit(lane: Lane, changes: Sequence[Change], _: resume.Choice) -> None:
        await lane.commit([], {change.replica: change.after for change in changes})

    patch.setattr(resume, "_commit", commit)


MUTATIONS = {
    "an open transaction overlooked": open_transaction_overlooked,
    "a compacted epoch taken for a loss": compacted_epoch_taken_for_a_loss,
    "a commit done again where another coordinates": commit_done_again_elsewhere,
    "an operator who decides before fencing": operator_who_decides_before_fencing,
    "an operator who leaves no gap": operator_who_leaves_no_gap,
}
