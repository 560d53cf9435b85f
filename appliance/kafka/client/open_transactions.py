"""The transactions that hold a last stable offset: DescribeProducers, ListTransactions, DescribeTransactions.

KIP-664. Brokers before 2.8 know none of the three, brokers before 3.0 only the first: what a broker cannot tell, or
the API key may not see, stays empty.
"""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kio.schema.api_versions.v3 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.describe_producers.v0 import DescribeProducersRequest, DescribeProducersResponse
from kio.schema.describe_producers.v0.request import TopicRequest
from kio.schema.describe_transactions.v0 import DescribeTransactionsRequest, DescribeTransactionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_transactions.v0 import ListTransactionsRequest, ListTransactionsResponse
from kio.schema.types import ProducerId, TopicName
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload

from appliance.errors import ApplianceError
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.protocol.wire import api

_SOFTWARE = "kafka-cloud-replicator"


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is neither committed nor aborted.

    ``first_offset`` is that of its first record in the partition; ``producer_id`` is -1, ``transactional_id`` empty
    and ``began``, in milliseconds, -1 where nobody tells.
    """

    first_offset: int
    producer_id: int = -1
    transactional_id: str = ""
    began: int = -1


async def open_transactions(
    cluster: Cluster, metadata: Metadata, partitions: Collection[Partition]
) -> dict[Partition, OpenTransaction]:
    """The oldest open transaction of each partition that has one, named as far as the brokers tell.

    Raises:
        Unreachable, BrokerBusy: a leader does not answer.
    """
    oldest: dict[Partition, OpenTransaction] = {}
    for leader in {metadata.leader(*partition) for partition in partitions}:
        led = [partition for partition in partitions if metadata.leader(*partition) == leader]
        oldest |= await _oldest(await cluster.broker(leader), led)
    names: dict[int, OpenTransaction] = {}
    for node in metadata.brokers if oldest else ():
        # A transaction is known to its coordinator alone, and a broker that is down cannot tell its own.
        with contextlib.suppress(ApplianceError):
            names |= await _named(await cluster.broker(node), {found.producer_id for found in oldest.values()})
    return {partition: _with_name(found, names) for partition, found in oldest.items()}


def _with_name(found: OpenTransaction, names: Mapping[int, OpenTransaction]) -> OpenTransaction:
    name = names.get(found.producer_id)
    return replace(found, transactional_id=name.transactional_id, began=name.began) if name else found


async def _oldest(leader: Connection, partitions: Iterable[Partition]) -> dict[Partition, OpenTransaction]:
    if not await _offers(leader, DescribeProducersRequest):
        return {}
    by_topic: dict[str, list[i32]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(i32(partition))
    request = DescribeProducersRequest(
        topics=tuple(
            TopicRequest(name=TopicName(topic), partition_indexes=tuple(numbers)) for topic, numbers in by_topic.items()
        )
    )
    return dict(_first_of_each(await leader.call(request, DescribeProducersResponse)))


def _first_of_each(response: DescribeProducersResponse) -> Iterator[tuple[Partition, OpenTransaction]]:
    for topic in response.topics:
        for partition in topic.partitions:
            found = [
                (int(producer.current_txn_start_offset), int(producer.producer_id))
                for producer in partition.active_producers
                if producer.current_txn_start_offset >= 0
            ]
            if found:
                yield (str(topic.name), int(partition.partition_index)), OpenTransaction(*min(found))


async def _named(coordinator: Connection, producer_ids: Collection[int]) -> dict[int, OpenTransaction]:
    """The transactions of these producers that this broker coordinates, by producer id."""
    if not await _offers(coordinator, ListTransactionsRequest, DescribeTransactionsRequest):
        return {}
    wanted = ListTransactionsRequest(producer_id_filters=tuple(ProducerId(number) for number in producer_ids))
    listed = await coordinator.call(wanted, ListTransactionsResponse)
    ids = tuple(state.transactional_id for state in listed.transaction_states)
    if not ids:
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


async def _offers(connection: Connection, *requests: type[RequestPayload]) -> bool:
    """True when a broker has these APIs; one that has not closes the connection when it is asked."""
    question = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="1")
    answer = await connection.call(question, ApiVersionsResponse)
    offered = {int(key.api_key): (key.min_version, key.max_version) for key in answer.api_keys}
    for request in requests:
        key, version = api(request)
        low, high = offered.get(int(key), (0, -1))
        if not low <= version <= high:
            return False
    return True
