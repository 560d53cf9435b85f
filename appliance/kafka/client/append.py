"""Produce without a transaction, for logs that others read uncommitted: what was appended twice does no harm there."""

from collections.abc import Sequence

from kio.schema.produce.v9 import ProduceRequest, ProduceResponse
from kio.schema.produce.v9.request import PartitionProduceData, TopicProduceData
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32

from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.produce import check_produced
from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records.batch import stamp_crc
from appliance.kafka.records.records import Record, pack

_ALL_IN_SYNC_REPLICAS = i16(-1)
_PURPOSE = "append"
_RECORDS_A_BATCH = 1_000
_SECONDS = 10.0


async def append(cluster: Cluster, metadata: Metadata, partition: Partition, records: Sequence[Record]) -> None:
    """Append the records to a partition; all in-sync replicas have them when this returns.

    Raises:
        PartitionsUnavailable, BrokerBusy, BrokerRefused, Unreachable: some may not have been appended.
    """
    leader = await cluster.broker(metadata.leader(*partition), _PURPOSE)
    for first in range(0, len(records), _RECORDS_A_BATCH):
        data = bytearray(pack(records[first : first + _RECORDS_A_BATCH], 0))
        stamp_crc(data)
        request = ProduceRequest(
            acks=_ALL_IN_SYNC_REPLICAS,
            timeout=milliseconds(_SECONDS),
            topic_data=(
                TopicProduceData(
                    name=TopicName(partition[0]),
                    partition_data=(PartitionProduceData(index=i32(partition[1]), records=Records(bytes(data))),),
                ),
            ),
        )
        check_produced(await leader.call(request, ProduceResponse, 2 * _SECONDS))
