"""The offsets of source partitions at a place that the operator names."""

from collections.abc import Collection

from appliance.errors import SettingsError
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets, offsets_at
from appliance.link.model.replicas import Replica
from appliance.replicator.model.position_change import Kind, Place

_BOUNDS = {Kind.EARLIEST: Bound.START, Kind.LATEST: Bound.STABLE_END}


async def source_offsets(
    source: Cluster, replicas: Collection[Replica], place: Place, option: str
) -> dict[Replica, int]:
    """The offset at which each partition goes on; past its last record where none is as new as the time.

    Raises:
        SettingsError: a partition does not hold the offset.
        Unreachable, BrokerBusy, BrokerRefused: as everywhere.
    """
    metadata = await source.metadata(sorted({replica.source_topic for replica in replicas}))
    partitions = [replica.source for replica in replicas]
    if place.kind in _BOUNDS:
        offsets = await list_offsets(source, metadata, partitions, _BOUNDS[place.kind])
        return {replica: offsets[replica.source] for replica in replicas}
    end = await list_offsets(source, metadata, partitions, Bound.STABLE_END)
    if place.kind is Kind.TIME:
        at = await offsets_at(source, metadata, partitions, place.number)
        found = {key: end[key] if offset is None else offset for key, offset in at.items()}
        return {replica: found[replica.source] for replica in replicas}
    first = await list_offsets(source, metadata, partitions, Bound.START)
    for key in partitions:
        if not first[key] <= place.number <= end[key]:
            what = f"{key[0]}-{key[1]} holds offsets {first[key]} to {end[key]}"
            expected = "expected one of these; --partition names one partition"
            raise SettingsError([f"{option} {place.text}: {what}: {expected}"])
    return dict.fromkeys(replicas, place.number)
