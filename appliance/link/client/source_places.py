"""Places in logs, each with a leader epoch by which a reader notices later that the log has lost what lay before.

That of the leader will do, whatever epochs lie before the offset: only a later leader can cut the log below it, and
its log then ends all epochs up to this one there (KIP-101, KIP-320).
"""

from collections.abc import Mapping

from appliance.errors import ApplianceError, raise_first
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import epoch_ends
from appliance.kafka.protocol.metadata import UNKNOWN_EPOCH, Metadata, Partition
from appliance.link.model.position import SourcePlace


async def places(source: Cluster, metadata: Metadata, offsets: Mapping[Partition, int]) -> dict[Partition, SourcePlace]:
    """The places of offsets that the leaders in the metadata have named."""
    by_partition, failures = await try_places(source, metadata, offsets)
    raise_first(failures.values())
    return by_partition


async def try_places(
    source: Cluster, metadata: Metadata, offsets: Mapping[Partition, int]
) -> tuple[dict[Partition, SourcePlace], dict[Partition, ApplianceError]]:
    """The same as far as they are known, and the errors of the others.

    A log in a format before Kafka 0.11 keeps no epochs, and its leader would refuse a Fetch that names one.
    """
    epochs = {key: epoch for key in offsets if (epoch := metadata.leader_epoch(*key)) > UNKNOWN_EPOCH}
    ends, failures = await epoch_ends(source, metadata, epochs)
    epochs_there = {key: epochs[key] for key, end in ends.items() if end >= offsets[key]}
    by_partition = {key: SourcePlace(each, epochs_there.get(key, UNKNOWN_EPOCH)) for key, each in offsets.items()}
    return {key: place for key, place in by_partition.items() if key not in failures}, failures
