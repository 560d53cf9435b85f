"""The transactions that hold a last stable offset: DescribeProducers, ListTransactions, DescribeTransactions.

KIP-664. Brokers before 2.8 know none of the three, brokers before 3.0 only the first: facts that a broker does not
know, or the API key may not see, stay empty.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from kio.schema.describe_producers.v0 import DescribeProducersRequest, DescribeProducersResponse
from kio.schema.describe_producers.v0.request import TopicRequest
from kio.schema.describe_transactions.v0 import DescribeTransactionsRequest, DescribeTransactionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_transactions.v0 import ListTransactionsRequest, ListTransactionsResponse
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.static.primitive import i32

from appliance.errors import ApplianceError, BrokerUnsupported, raise_first
from appliance.grouping import grouped
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.client.requests import ask_leaders
from appliance.kafka.protocol.answer import Answers, check
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.protocol.versions import offers


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is neither committed nor aborted.

    ``first_offset`` is that of its first record in the partition; ``producer_id`` is -1, ``transactional_id`` empty
    and ``began``, in milliseconds, -1 if unknown.
    """

    first_offset: int
    producer_id: int = -1
    transactional_id: str = ""
    began: int = -1


async def open_transactions(
    cluster: Cluster, metadata: Metadata, partitions: Collection[Partition]
) -> dict[Partition, OpenTransaction]:
    """The oldest open transaction of each partition with one, named as far as the brokers know it."""
    oldest: dict[Partition, OpenTransaction] = {}

    async def ask(leader: Connection, led: Collection[Partition]) -> None:
        if offers(leader.offered, DescribeProducersRequest):
            response = await leader.call(_describe(led), DescribeProducersResponse)
            every = _open_in_each(response)
            oldest.update({partition: OpenTransaction(*min(each)) for partition, _, each in every if each})

    raise_first((await ask_leaders(cluster, metadata, partitions, ask)).values())
    names: dict[int, OpenTransaction] = {}
    for node in metadata.brokers if oldest else ():
        # Only its coordinator knows a transaction, and a broker that is down cannot list its own.
        with contextlib.suppress(ApplianceError):
            names |= await _named(await cluster.broker(node), {each.producer_id for each in oldest.values()})
    return {partition: _with_name(each, names) for partition, each in oldest.items()}


def _with_name(transaction: OpenTransaction, names: Mapping[int, OpenTransaction]) -> OpenTransaction:
    name = names.get(transaction.producer_id)
    return replace(transaction, transactional_id=name.transactional_id, began=name.began) if name else transaction


async def open_since(
    cluster: Cluster, metadata: Metadata, partitions: Collection[Partition]
) -> Answers[Partition, dict[int, int]]:
    """The first offset of each producer's open transaction, by partition and producer id; and what is not known."""
    answers = Answers[Partition, dict[int, int]]({}, {})

    async def ask(leader: Connection, led: Collection[Partition]) -> None:
        if not offers(leader.offered, DescribeProducersRequest):
            raise BrokerUnsupported("the brokers do not tell whose transactions are open: this needs Kafka 2.8")
        response = await leader.call(_describe(led), DescribeProducersResponse)
        for partition, code, transactions in _open_in_each(response):
            firsts = {producer_id: first for first, producer_id in transactions}
            answers.take(partition, firsts, code, f"describe the producers of {partition}")

    answers.failures.update(await ask_leaders(cluster, metadata, partitions, ask))
    return answers


def _describe(partitions: Collection[Partition]) -> DescribeProducersRequest:
    topics = tuple(
        TopicRequest(name=TopicName(topic), partition_indexes=tuple(map(i32, numbers)))
        for topic, numbers in grouped(partitions).items()
    )
    return DescribeProducersRequest(topics=topics)


def _open_in_each(response: DescribeProducersResponse) -> Iterator[tuple[Partition, ErrorCode, list[tuple[int, int]]]]:
    """Each partition, its error, and the first offset and producer id of each open transaction."""
    for topic in response.topics:
        for partition in topic.partitions:
            transactions = [
                (int(producer.current_txn_start_offset), int(producer.producer_id))
                for producer in partition.active_producers
                if producer.current_txn_start_offset >= 0
            ]
            yield Partition(str(topic.name), int(partition.partition_index)), partition.error_code, transactions


async def transactional_ids(cluster: Cluster, producer_ids: Collection[int]) -> dict[int, str]:
    """The transactional ids of these producers, as far as brokers tell them: each knows those that it coordinates."""
    ids: dict[int, str] = {}
    for node in (await cluster.metadata([])).brokers if producer_ids else ():
        ids |= await _listed(await cluster.broker(node), producer_ids)
    return ids


async def _listed(coordinator: Connection, producer_ids: Collection[int]) -> dict[int, str]:
    """The transactional ids of those of these producers that this broker coordinates."""
    if not offers(coordinator.offered, ListTransactionsRequest):
        return {}
    request = ListTransactionsRequest(producer_id_filters=tuple(ProducerId(number) for number in producer_ids))
    listed = await coordinator.call(request, ListTransactionsResponse)
    check(listed.error_code, "list transactions")
    return {int(state.producer_id): str(state.transactional_id) for state in listed.transaction_states}


async def _named(coordinator: Connection, producer_ids: Collection[int]) -> dict[int, OpenTransaction]:
    """The transactions of these producers that this broker coordinates, by producer id."""
    ids = tuple(map(TransactionalId, (await _listed(coordinator, producer_ids)).values()))
    if not ids or not offers(coordinator.offered, DescribeTransactionsRequest):
        return {}
    described = await coordinator.call(DescribeTransactionsRequest(transactional_ids=ids), DescribeTransactionsResponse)
    return {
        int(state.producer_id): OpenTransaction(
            -1,
            int(state.producer_id),
            str(state.transactional_id),
            int(state.transaction_start_time.timestamp() * 1000),
        )
        for state in described.transaction_states
        if state.error_code is ErrorCode.none
    }
