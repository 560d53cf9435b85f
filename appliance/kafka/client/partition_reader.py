"""Reading one partition by itself, Fetch by Fetch: the committed records from an offset on."""

from appliance.errors import BrokerBusy
from appliance.kafka.client.fetch import Fetched, FetchLimits, Wanted, fetch
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import NOWHERE, Metadata, Partition
from appliance.kafka.records import batch
from appliance.kafka.records.committed import visible
from appliance.kafka.records.decompression import LIMIT, RECORD_BYTES
from appliance.kafka.records.records import Record, unpack

_THROTTLED_MAX = 10


async def fetch_partition(
    cluster: Cluster, metadata: Metadata, partition: Partition, offset: int, purpose: str, limits: FetchLimits
) -> Fetched:
    """One Fetch from the leader that ``metadata`` name, by the topic's id and that leader's epoch.

    So neither a recreated topic nor a former leader is mistaken for the right one.
    """
    topic, epoch = metadata.topics.get(partition.topic), metadata.leader_epoch(*partition)
    connection = await cluster.broker(metadata.leader(*partition), purpose)
    topic_id = topic.id if topic else NOWHERE
    wanted = Wanted(partition, topic_id, offset, limits.response_bytes, leader_epoch=epoch)
    doing = f"fetch {partition} from offset {offset}"
    # A throttling broker names no partition (KIP-219); the connection waits for the announced time.
    for _ in range(_THROTTLED_MAX):
        for fetched in await fetch(connection, [wanted], limits):
            check(fetched.error, doing)
            return fetched
    raise BrokerBusy(f"{doing}: the broker throttles, and answers nothing", "THROTTLING_QUOTA_EXCEEDED")


def committed_records(fetched: Fetched, offset: int) -> tuple[list[Record], int]:
    """The committed records from ``offset`` on, as far as memory allows, and the offset to continue from."""
    batches, following = visible(fetched.records, fetched.aborted, offset, fetched.stable_end)
    records, room = list[Record](), LIMIT
    for data in batches:
        batch.verify(data)
        some = unpack(data, offset)
        room -= sum(len(each.body) + RECORD_BYTES for each in some)
        if records and room < 0:
            return records, data.header.base_offset
        records += some
    return records, following
