"""The groups of the source as MirrorMaker 2's checkpoints."""

from collections.abc import Iterable, Iterator

from appliance.failover.model.group_plan import GroupPlan
from appliance.link.model.mirror_records import MirrorCheckpoint


def checkpoints(plans: Iterable[GroupPlan]) -> Iterator[MirrorCheckpoint]:
    """A checkpoint for each offset that is known in its copy.

    Where the copy lags behind the group, it is a checkpoint of the copy's end, and of the source's offset there.
    """
    for plan in plans:
        for partition in plan.partitions:
            if (target := partition.target) is not None:
                upstream = partition.upstream.offset - partition.translation.behind
                yield MirrorCheckpoint(plan.name, partition.copy, upstream, target.offset, target.metadata)
