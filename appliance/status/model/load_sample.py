"""The load of the partitions in a snapshot."""

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import CopyState
from appliance.link.model.link_load import LoadSample
from appliance.status.model.snapshot import LinkState, Snapshot

_PLAIN = frozenset({LinkState.COPYING, LinkState.COPIED})


def load_sample(snapshot: Snapshot) -> LoadSample | None:
    """The load; None unless the link plainly copies: nothing is unknown or stopped, and no command has work left."""
    if snapshot.state not in _PLAIN or any(record.state.is_unfinished for record in snapshot.states):
        return None
    copied: dict[Partition, int] = {}
    due: dict[Partition, float] = {}
    for topic in snapshot.topics:
        grows = topic.active and topic.state is CopyState.ACTIVE
        for each in topic.partitions:
            if each.bytes is None or each.next_offset is None:
                continue
            key = each.topic, each.partition
            copied[key] = each.bytes
            if grows and each.lag_records and each.copied:
                due[key] = each.lag_records * each.bytes / each.copied
    return LoadSample(snapshot.at / 1000, copied, due)
