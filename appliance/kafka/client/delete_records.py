"""DeleteRecords (KIP-107): the beginning of a log is deleted by whoever knows that nobody needs it."""

from collections.abc import Collection, Mapping

from kio.schema.delete_records.v2 import DeleteRecordsRequest, DeleteRecordsResponse
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsTopic
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from appliance.errors import ApplianceError
from appliance.grouping import grouped
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.client.requests import ask_leaders
from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol.answer import Answers
from appliance.kafka.protocol.metadata import Metadata, Partition

_TIMEOUT = 30.0


async def delete_records(
    cluster: Cluster, metadata: Metadata, before: Mapping[Partition, int]
) -> dict[Partition, ApplianceError]:
    """Delete what lies before an offset of each partition; the errors of those where that failed."""
    answers = Answers[Partition, int]({}, {})

    async def ask(leader: Connection, led: Collection[Partition]) -> None:
        request = DeleteRecordsRequest(
            topics=tuple(
                DeleteRecordsTopic(
                    name=TopicName(topic),
                    partitions=tuple(
                        DeleteRecordsPartition(
                            partition_index=i32(number), offset=i64(before[Partition(topic, number)])
                        )
                        for number in numbers
                    ),
                )
                for topic, numbers in grouped(led).items()
            ),
            timeout=milliseconds(_TIMEOUT),
        )
        response = await leader.call(request, DeleteRecordsResponse, 2 * _TIMEOUT)
        for topic in response.topics:
            for each in topic.partitions:
                key = Partition(str(topic.name), int(each.partition_index))
                answers.take(key, int(each.low_watermark), each.error_code, f"delete the beginning of {key}")

    return await ask_leaders(cluster, metadata, before, ask) | answers.failures
