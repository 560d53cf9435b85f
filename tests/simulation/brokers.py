"""A Kafka cluster in memory: its brokers answer each request at once; when that comes, the client's side decides."""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kio.schema.add_partitions_to_txn.v3 import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kio.schema.add_partitions_to_txn.v3.response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnTopicResult,
)
from kio.schema.describe_groups.v4 import DescribeGroupsRequest, DescribeGroupsResponse
from kio.schema.describe_groups.v4.response import DescribedGroup, DescribedGroupMember
from kio.schema.end_txn.v3 import EndTxnRequest, EndTxnResponse
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v3 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.init_producer_id.v4 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.list_offsets.v6 import ListOffsetsRequest, ListOffsetsResponse
from kio.schema.list_offsets.v6.response import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kio.schema.offset_for_leader_epoch.v4.response import EpochEndOffset, OffsetForLeaderTopicResult
from kio.schema.produce.v9 import ProduceRequest, ProduceResponse
from kio.schema.produce.v9.response import PartitionProduceResponse, TopicProduceResponse
from kio.schema.types import BrokerId, ProducerId
from kio.static.primitive import i32, i64

from appliance.kafka.client.produce import ProduceExchange
from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.protocol.metadata import Topic as TopicMetadata
from appliance.kafka.records.batch import restamp
from appliance.link.model.standby import Members, encode
from appliance.settings.target import Target
from tests.simulation.coordinator import Coordinator, Later, Transaction
from tests.simulation.log import Log

AT_ONCE = milliseconds(0)
NODES = (1, 2)
_TARGETS = {node: Target(f"b{node}.example", 9092) for node in NODES}
_NONE = ErrorCode.none


@dataclass(slots=True, eq=False)
class Topic:
    """A topic by its id."""

    name: str
    id: uuid.UUID
    logs: list[Log]
    configs: dict[str, str] = field(default_factory=dict)


class Brokers:
    """The cluster; ``refusal`` is what the request that is handled now is refused with."""

    def __init__(self, name: str, later: Later, decided: Callable[[Transaction], None]) -> None:
        self.name = name
        self.topics: dict[str, Topic] = {}
        self.coordinator = Coordinator(NODES, later, decided, self.changed)
        self.refusal: ErrorCode | None = None
        self.away: set[int] = set()
        """The brokers that take nothing and answer nothing now."""
        self.noted: str = ""
        """The subject and result of the last request, for the trace."""
        self.told: list[Metadata] = []
        """The metadata so far; a broker that lags tells an older one than the last."""
        self.grown: list[Callable[[Log], None]] = []
        self.not_offered = {61, 65, 66}
        """DescribeProducers, DescribeTransactions and ListTransactions: nobody names who holds a partition up."""
        self.replicators = Members()
        """The members of the link's group, as its coordinator shows them."""
        self._made = 0
        self._handlers: dict[type, Callable[[Any, int], Any]] = {
            ProduceExchange: self._produce,
            ProduceRequest: self._append,
            InitProducerIdRequest: self._init_producer_id,
            AddPartitionsToTxnRequest: self._add_partitions,
            EndTxnRequest: self._end_transaction,
            FindCoordinatorRequest: self._find_coordinator,
            DescribeGroupsRequest: self._describe_groups,
            ListOffsetsRequest: self._list_offsets,
            OffsetForLeaderEpochRequest: self._epoch_ends,
        }
        self._learn()

    def handles(self, kind: type, handler: Callable[[Any, int], Any]) -> None:
        """Answer these requests by that."""
        self._handlers[kind] = handler

    def handler(self, kind: type) -> Callable[[Any, int], Any]:
        """By what these requests are answered."""
        return self._handlers[kind]

    def handle(self, request: Any, node: int) -> Any:
        """The answer of a broker to a request."""
        return self._handlers[type(request)](request, node)

    def make(self, name: str, partitions: int, configs: dict[str, str] | None = None) -> Topic:
        """Make a topic."""
        self._made += 1
        identity = uuid.UUID(int=(hash_of(self.name) << 64) + self._made)
        logs = [self._log(name, number, NODES[(self._made + number) % len(NODES)]) for number in range(partitions)]
        topic = self.topics[name] = Topic(name, identity, logs, dict(configs or {}))
        self._learn()
        return topic

    def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions."""
        logs = self.topics[name].logs
        logs += [self._log(name, number, NODES[number % len(NODES)]) for number in range(len(logs), partitions)]
        self._learn()

    def _log(self, name: str, number: int, leader: int) -> Log:
        return Log(name, number, leader, forgives=not self.coordinator.verifies)

    def be_old(self) -> None:
        """Be brokers before 3.7, which take what is late where they do not know better (KAFKA-14402)."""
        self.coordinator.verifies = False
        for log in self.logs():
            log.forgives = True

    def delete(self, name: str) -> None:
        """Delete a topic."""
        del self.topics[name]
        self._learn()

    def lead(self, log: Log, leader: int, unnoticed: bool = False) -> None:
        """Let another broker lead a partition."""
        log.lead(leader, unnoticed)
        self._learn()
        self.changed(log)

    def log(self, partition: Partition) -> Log | None:
        """The log of a partition, if there is one."""
        topic = self.topics.get(partition[0])
        return topic.logs[partition[1]] if topic is not None and partition[1] < len(topic.logs) else None

    def is_compacted(self, log: Log) -> bool:
        """True if the log's topic is compacted."""
        return self.topics[log.topic].configs.get("cleanup.policy") == "compact"

    def logs(self) -> Iterable[Log]:
        """The logs of all partitions."""
        return (log for topic in self.topics.values() for log in topic.logs)

    def changed(self, log: Log) -> None:
        """Tell those that wait for it that there is more, or another leader."""
        for tell in self.grown:
            tell(log)

    def metadata(self, names: Sequence[str] | None, behind: int = 0) -> Metadata:
        """The metadata of a broker that lags by ``behind`` changes."""
        known = self.told[max(0, len(self.told) - 1 - behind)]
        if names is None:
            return known
        topics = {name: known.topics[name] for name in names if name in known.topics}
        return Metadata(known.cluster_id, known.controller, known.brokers, topics)

    def _find_coordinator(self, _: FindCoordinatorRequest, node: int) -> FindCoordinatorResponse:
        """Each broker says of itself that it coordinates the link's group."""
        found = {"node_id": BrokerId(node), "host": "", "port": i32(9092)}
        return FindCoordinatorResponse(
            throttle_time=AT_ONCE, error_code=self.refusal or _NONE, error_message=None, **found
        )

    def _describe_groups(self, request: DescribeGroupsRequest, _: int) -> DescribeGroupsResponse:
        members = tuple(
            DescribedGroupMember(
                member_id=each.run,
                group_instance_id=each.place,
                client_id="",
                client_host="",
                member_metadata=encode(each),
                member_assignment=encode(self.replicators.assignment),
            )
            for each in self.replicators.members
        )
        described = DescribedGroup(
            error_code=self.refusal or _NONE,
            group_id=request.groups[0],
            group_state="Stable" if members else "Dead",
            protocol_type="",
            protocol_data="",
            members=members,
        )
        return DescribeGroupsResponse(throttle_time=AT_ONCE, groups=(described,))

    def _learn(self) -> None:
        topics = {
            topic.name: TopicMetadata(
                topic.name,
                topic.id,
                False,
                tuple(log.leader for log in topic.logs),
                _NONE,
                tuple(log.leader_epoch for log in topic.logs),
                (2,) * len(topic.logs),
                (2,) * len(topic.logs),
            )
            for topic in self.topics.values()
        }
        self.told.append(Metadata(self.name, NODES[0], _TARGETS, topics))

    def leads(self, log: Log | None, node: int, epoch: int = -1) -> ErrorCode:
        """The error of a broker that does not serve a partition as its leader of that epoch; none if it does."""
        if self.refusal is not None:
            return self.refusal
        if log is None:
            return ErrorCode.unknown_topic_or_partition
        if 0 <= epoch < log.leader_epoch:
            return ErrorCode.fenced_leader_epoch
        if epoch > log.leader_epoch:
            return ErrorCode.unknown_leader_epoch
        return _NONE if log.leader == node else ErrorCode.not_leader_or_follower

    def read_to(self, log: Log | None, node: int, epoch: int) -> tuple[ErrorCode, int, int]:
        """The log's end and last stable offset for readers at a broker, or its error."""
        former = log.former if log is not None else None
        if self.refusal is None and former is not None and node == former.leader and epoch in (-1, former.epoch):
            return _NONE, former.end, former.stable_end
        code = self.leads(log, node, epoch)
        return (code, -1, -1) if log is None else (code, log.end, log.stable_end)

    def _produce(self, request: ProduceExchange, node: int) -> ProduceResponse:
        answers: dict[str, list[PartitionProduceResponse]] = {}
        notes = []
        for partition, content, sequence in request.copies:
            log = self.log(partition)
            code, offset = self.leads(log, node), -1
            if code is _NONE and log is not None:
                producer = request.producer
                code = self.coordinator.verify(producer.id, producer.epoch, log)
                if code is _NONE:
                    data = bytearray(content)
                    restamp(data, producer.id, producer.epoch, sequence)
                    code, offset = log.append(data)
                    self.changed(log)
            notes.append(f"{partition[0]}-{partition[1]} seq {sequence} {code.name}@{offset}")
            answer = PartitionProduceResponse(
                index=partition[1],
                error_code=code,
                base_offset=offset,
                log_append_time=None,
                record_errors=(),
            )
            answers.setdefault(partition[0], []).append(answer)
        self.noted = f"epoch {request.producer.epoch} {', '.join(notes)}"
        topics = tuple(TopicProduceResponse(name=n, partition_responses=tuple(a)) for n, a in answers.items())  # type: ignore[arg-type]
        return ProduceResponse(responses=topics, throttle_time=AT_ONCE)

    def _append(self, request: ProduceRequest, node: int) -> ProduceResponse:
        """Take batches of nobody in particular."""
        topics = []
        for topic in request.topic_data:
            answers = []
            for each in topic.partition_data:
                log, offset = self.log((str(topic.name), int(each.index))), -1
                code = self.leads(log, node)
                if code is _NONE and log is not None:
                    code, offset = log.append(bytes(each.records or b""))
                    self.changed(log)
                    self.noted = f"{log} {code.name}@{offset}"
                answers.append(
                    PartitionProduceResponse(
                        index=each.index,
                        error_code=code,
                        base_offset=i64(offset),
                        log_append_time=None,
                        record_errors=(),
                    )
                )
            topics.append(TopicProduceResponse(name=topic.name, partition_responses=tuple(answers)))
        return ProduceResponse(responses=tuple(topics), throttle_time=AT_ONCE)

    def _coordinate(self, name: str, node: int, kind: type, act: Callable[[], ErrorCode]) -> ErrorCode:
        return self.refusal or self.coordinator.asked(name, node, kind, act)

    def _init_producer_id(self, request: InitProducerIdRequest, node: int) -> InitProducerIdResponse:
        name, producer, epoch = str(request.transactional_id), -1, -1

        def init() -> ErrorCode:
            nonlocal producer, epoch
            code, producer, epoch = self.coordinator.init(name)
            return code

        code = self._coordinate(name, node, InitProducerIdRequest, init)
        if code is not _NONE:
            producer, epoch = -1, -1
        self.noted = f"{name} {code.name} epoch {epoch}"
        return InitProducerIdResponse(
            throttle_time=AT_ONCE, error_code=code, producer_id=ProducerId(producer), producer_epoch=epoch
        )

    def _add_partitions(self, request: AddPartitionsToTxnRequest, node: int) -> AddPartitionsToTxnResponse:
        wanted = [(str(t.name), int(n)) for t in request.v3_and_below_topics for n in t.partitions]
        found = {partition: log for partition in wanted if (log := self.log(partition)) is not None}
        name, producer = str(request.v3_and_below_transactional_id), int(request.v3_and_below_producer_id)
        epoch = int(request.v3_and_below_producer_epoch)
        if self.refusal is None and len(found) < len(wanted):
            unknown, others = ErrorCode.unknown_topic_or_partition, ErrorCode.operation_not_attempted
            codes = {partition: others if partition in found else unknown for partition in wanted}
        else:
            code = self._coordinate(
                name, node, AddPartitionsToTxnRequest, lambda: self.coordinator.add(name, producer, epoch, found)
            )
            codes = dict.fromkeys(wanted, code)
        told = ", ".join(f"{name}-{number} {code.name}" for (name, number), code in codes.items())
        self.noted = f"epoch {epoch} {told}"
        results = tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=n, partition_error_code=codes[str(topic.name), int(n)]
                    )
                    for n in topic.partitions
                ),
            )
            for topic in request.v3_and_below_topics
        )
        return AddPartitionsToTxnResponse(throttle_time=AT_ONCE, results_by_topic_v3_and_below=results)

    def _end_transaction(self, request: EndTxnRequest, node: int) -> EndTxnResponse:
        name, producer, epoch = str(request.transactional_id), int(request.producer_id), int(request.producer_epoch)
        code = self._coordinate(
            name, node, EndTxnRequest, lambda: self.coordinator.end(name, producer, epoch, request.committed)
        )
        self.noted = f"{name} epoch {epoch} {'commit' if request.committed else 'abort'} {code.name}"
        return EndTxnResponse(throttle_time=AT_ONCE, error_code=code)

    def _list_offsets(self, request: ListOffsetsRequest, node: int) -> ListOffsetsResponse:
        topics, notes = [], []
        for topic in request.topics:
            answers = []
            for asked in topic.partitions:
                log = self.log((str(topic.name), int(asked.partition_index)))
                code, end, stable_end = self.read_to(log, node, int(asked.current_leader_epoch))
                offset = -1
                if code is _NONE and log is not None:
                    latest = stable_end if request.isolation_level else end
                    offset = log.start if asked.timestamp == -2 else latest
                notes.append(f"{log} {code.name}@{offset}")
                answers.append(
                    ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code, offset=offset)
                )
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(answers)))
        self.noted = ", ".join(notes)
        return ListOffsetsResponse(throttle_time=AT_ONCE, topics=tuple(topics))

    def _epoch_ends(self, request: OffsetForLeaderEpochRequest, node: int) -> OffsetForLeaderEpochResponse:
        topics = []
        for topic in request.topics:
            answers = []
            for asked in topic.partitions:
                log = self.log((str(topic.topic), int(asked.partition)))
                code, found = self.leads(log, node, int(asked.current_leader_epoch)), (-1, -1)
                if code is _NONE and log is not None:
                    found = log.epoch_end(int(asked.leader_epoch))
                answers.append(
                    EpochEndOffset(
                        error_code=code, partition=asked.partition, leader_epoch=found[0], end_offset=found[1]
                    )
                )
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(answers)))
        return OffsetForLeaderEpochResponse(throttle_time=AT_ONCE, topics=tuple(topics))


def hash_of(text: str) -> int:
    """The same in every process."""
    return int.from_bytes(text.encode()[:7], "big")
