"""The transactional producer's calls (KIP-98, KIP-360), each one question and one answer, without retries.

A lane owns the transactional id, and interprets the errors.
"""

import datetime
import functools
from collections.abc import Iterable
from dataclasses import dataclass

from kio.schema.add_partitions_to_txn.v3 import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kio.schema.add_partitions_to_txn.v3.request import AddPartitionsToTxnTopic
from kio.schema.end_txn.v3 import EndTxnRequest, EndTxnResponse
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v4 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.static.primitive import i16, i32, i32Timedelta

from appliance.errors import ApplianceError, OutcomeUnknown, PartitionsUnavailable
from appliance.grouping import grouped
from appliance.kafka.client.interface import Connection
from appliance.kafka.protocol.answer import check, failure
from appliance.kafka.protocol.metadata import Partition

_OF_THE_PARTITION = frozenset(
    {ErrorCode.topic_authorization_failed, ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception}
)
"""A coordinator's codes for the partitions that keep it from adding any; the others are "not attempted"."""


@dataclass(frozen=True, slots=True)
class Producer:
    """A transactional producer: its transactional id, and the producer id and epoch that the coordinator gave it."""

    transactional_id: str
    id: int
    epoch: int


@functools.cache
def milliseconds(seconds: float) -> i32Timedelta:
    """Seconds as the protocol's duration."""
    return i32Timedelta.parse(datetime.timedelta(milliseconds=int(seconds * 1000)))


async def init_producer_id(coordinator: Connection, transactional_id: str, timeout: float) -> Producer:
    """A new epoch of the id: the earlier owner is fenced, and its open transaction is aborted when this returns.

    Raises:
        BrokerBusy: its open transaction is still being aborted, or the coordinator is not ready: ask again.
    """
    request = InitProducerIdRequest(
        transactional_id=TransactionalId(transactional_id), transaction_timeout=milliseconds(timeout)
    )
    answer = await coordinator.call(request, InitProducerIdResponse)
    check(answer.error_code, f"take transactional id {transactional_id}")
    return Producer(transactional_id, int(answer.producer_id), int(answer.producer_epoch))


async def add_partitions(coordinator: Connection, producer: Producer, partitions: Iterable[Partition]) -> None:
    """Open a transaction, if none is open, and declare the partitions that it will write.

    Raises:
        Fenced: the epoch is no longer the newest.
        BrokerBusy: the transaction before is still being completed: ask again.
        PartitionsUnavailable: some of them must not or cannot be written; no transaction was opened.
    """
    failures: dict[Partition, ApplianceError] = {}
    for partition, code in (await try_partitions(coordinator, producer, partitions)).items():
        doing = f"add {partition} to a transaction of {producer.transactional_id}"
        if code in _OF_THE_PARTITION:
            failures[partition] = failure(code, doing)
        elif code is not ErrorCode.operation_not_attempted:
            check(code, doing)
    if failures:
        raise PartitionsUnavailable(failures)


async def try_partitions(
    coordinator: Connection, producer: Producer, partitions: Iterable[Partition]
) -> dict[Partition, ErrorCode]:
    """Open a transaction; the coordinator's answer for each partition: it takes all, or none."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TransactionalId(producer.transactional_id),
        v3_and_below_producer_id=ProducerId(producer.id),
        v3_and_below_producer_epoch=i16(producer.epoch),
        v3_and_below_topics=tuple(
            AddPartitionsToTxnTopic(name=TopicName(name), partitions=tuple(map(i32, numbers)))
            for name, numbers in grouped(partitions).items()
        ),
    )
    answer = await coordinator.call(request, AddPartitionsToTxnResponse)
    return {
        Partition(str(topic_result.name), int(result.partition_index)): result.partition_error_code
        for topic_result in answer.results_by_topic_v3_and_below
        for result in topic_result.results_by_partition
    }


async def end_transaction(coordinator: Connection, producer: Producer, timeout: float, committed: bool = True) -> None:
    """Commit, or abort. When this returns, the transaction is decided, and readers will see its records, or never.

    Raises:
        Fenced: the epoch is no longer the newest; nothing was committed by this call.
        OutcomeUnknown, Unreachable: the outcome is unknown.
    """
    request = EndTxnRequest(
        transactional_id=TransactionalId(producer.transactional_id),
        producer_id=ProducerId(producer.id),
        producer_epoch=i16(producer.epoch),
        committed=committed,
    )
    answer = await coordinator.call(request, EndTxnResponse, timeout)
    doing = f"{'commit' if committed else 'abort'} a transaction of {producer.transactional_id}"
    if answer.error_code is ErrorCode.unknown_server_error:
        # The coordinator's answer when another producer begins to take the id at the same moment.
        raise OutcomeUnknown(f"{doing}: UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR")
    check(answer.error_code, doing)
