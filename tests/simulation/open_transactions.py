"""DescribeProducers at brokers in memory: whose transactions are open in a partition (KIP-664)."""

from kio.schema.describe_producers.v0 import DescribeProducersRequest, DescribeProducersResponse
from kio.schema.describe_producers.v0.response import PartitionResponse, ProducerState, TopicResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import ProducerId
from kio.static.primitive import i32, i64

from tests.simulation.brokers import AT_ONCE, Brokers

_DESCRIBE_PRODUCERS = 61


class OpenTransactions:
    """Answers for one cluster."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        brokers.not_offered -= {_DESCRIBE_PRODUCERS}
        brokers.handles(DescribeProducersRequest, self._describe)

    def _describe(self, request: DescribeProducersRequest, node: int) -> DescribeProducersResponse:
        topics = tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(self._of(str(topic.name), number, node) for number in topic.partition_indexes),
            )
            for topic in request.topics
        )
        return DescribeProducersResponse(throttle_time=AT_ONCE, topics=topics)

    def _of(self, topic: str, number: i32, node: int) -> PartitionResponse:
        log = self._brokers.log((topic, int(number)))
        code = self._brokers.leads(log, node)
        known = log.open if log is not None and code is ErrorCode.none else {}
        producers = tuple(
            ProducerState(
                producer_id=ProducerId(producer),
                producer_epoch=i32(log.producers[producer].epoch if log else -1),
                last_sequence=i32(-1),
                last_timestamp=i64(-1),
                coordinator_epoch=i32(-1),
                current_txn_start_offset=i64(first),
            )
            for producer, first in known.items()
        )
        return PartitionResponse(
            partition_index=number, error_code=code, error_message=None, active_producers=producers
        )
