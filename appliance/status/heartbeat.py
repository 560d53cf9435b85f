"""The newest heartbeat that came from the source, read from its topic at the destination."""

from appliance.errors import ApplianceError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.fetch import FetchLimits
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.partition_reader import committed_records, fetch_partition
from appliance.kafka.protocol.metadata import Metadata
from appliance.link.model.mirror_records import Heartbeat, decode_heartbeat

_LIMITS = FetchLimits(64 * 1024, wait=0)


async def newest_heartbeat(cluster: KafkaCluster, metadata: Metadata, topic: str) -> Heartbeat | None:
    """The last heartbeat in ``topic``; None where there is none, or the cluster does not let us read it."""
    partition = (topic, 0)
    if topic not in metadata.topics:
        return None
    try:
        end = (await list_offsets(cluster, metadata, [partition], Bound.END))[partition]
        if end == 0:
            return None
        fetched = await fetch_partition(cluster, metadata, partition, end - 1, "heartbeats", _LIMITS)
        records, _ = committed_records(fetched, end - 1)
        return decode_heartbeat(records[-1]) if records else None
    except ApplianceError:
        return None  # it is a measurement; whatever else the cluster tells is known without it
