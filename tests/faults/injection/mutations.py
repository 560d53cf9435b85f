"""The engine made wrong, each time in one way, to show that the checker finds it."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kio.schema.produce.v9 import ProduceResponse

from appliance.driver.model import link_facts
from appliance.engine.model import admission as judgement
from appliance.engine.model.admission import CopyEnds, Facts, Verdict
from appliance.engine.read import buffer
from appliance.engine.write import admission
from appliance.engine.write.copies import CopyExaminer
from appliance.engine.write.lane import Lane
from appliance.engine.write.ownership import OwnedLane
from appliance.errors import BrokerBusy, Unreachable
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.offsets import Bound
from appliance.kafka.client.produce import Copy
from appliance.kafka.client.transactions import Producer
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.committed import AbortedTransaction
from appliance.link.client import writer
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.claim_ledger import ClaimLedger
from appliance.link.model.link_check import PositionsTopic
from appliance.link.model.position import CopyEnd, Position
from appliance.link.model.replicas import Replica
from appliance.link.model.states import LANE, StateMachine
from tests.faults.injection import switches
from tests.faults.injection.crashes import is_positions

_LATE = 3.0
"""Seconds that pass between reading and fencing, when that is the order."""


_replaced: list[tuple[object, str, object]] = []
"""What was there before, the newest last."""


def patch() -> None:
    """Give this process the mutation that its environment asks for, if any."""
    name = switches.mutation()
    if name:
        MUTATIONS[name]()


@contextlib.contextmanager
def mutated(name: str) -> Iterator[None]:
    """Within the block this process has the mutation."""
    MUTATIONS[name]()
    try:
        yield
    finally:
        while _replaced:
            setattr(*_replaced.pop())


def _position_committed_separately() -> None:
    """Against invariant A: the copies in one transaction, the positions in the next one."""
    add_partitions, produce, end_transaction = writer.add_partitions, writer.produce, writer.end_transaction
    held: dict[str, tuple[BrokerConnection, Collection[Copy]]] = {}

    async def add(coordinator: BrokerConnection, producer: Producer, partitions: Collection[Partition]) -> None:
        copies = [partition for partition in partitions if not is_positions(partition)]
        await add_partitions(coordinator, producer, copies or partitions)

    async def hold(
        leader: BrokerConnection, producer: Producer, batches: Collection[Copy]
    ) -> "asyncio.Future[ProduceResponse]":
        positions = [batch for batch in batches if is_positions(batch.partition)]
        if positions:
            held[producer.transactional_id] = leader, positions
        copies = [batch for batch in batches if not is_positions(batch.partition)]
        return await produce(leader, producer, copies) if copies else _nothing_to_answer()

    async def end(coordinator: BrokerConnection, producer: Producer, timeout: float) -> None:
        leader, positions = held.pop(producer.transactional_id)
        await end_transaction(coordinator, producer, timeout)
        await _insist(lambda: add_partitions(coordinator, producer, [batch.partition for batch in positions]))
        writer.check_produced(await (await produce(leader, producer, positions)))
        await end_transaction(coordinator, producer, timeout)

    _replace(writer, add_partitions=add, produce=hold, end_transaction=end)
    _look_at_nothing_past_the_end()


def _read_before_fencing() -> None:
    """Against invariant C: what the predecessor commits between the two is not known to the lane."""
    fence = OwnedLane.fence

    async def promise(self: OwnedLane) -> Producer:
        return Producer(self.transactional_id, -1, -1)

    async def read_first(self: OwnedLane, _: Producer) -> LaneCheckpoint:
        topic, index = self.positions
        remembered = LaneCheckpoint()
        await peek_checkpoint(self.cluster, topic, index, remembered)
        await asyncio.sleep(_LATE)
        producer = await _insist(lambda: fence(self))
        metadata = await self.cluster.metadata([topic])
        self._writer = writer.Writer(self.cluster, producer, self.positions, metadata, self.transaction_timeout)
        self.named = False
        return remembered

    _replace(OwnedLane, fence=promise, read_checkpoint=read_first)
    _look_at_nothing_past_the_end()


def _look_at_nothing_past_the_end() -> None:
    """Let a copy hold more than is remembered: a lane that looks stops, before anything is doubled (invariant H)."""

    async def nothing(*_: object) -> None:
        return None

    _replace(CopyExaminer, first_past_the_end=nothing)


def _aborted_let_through() -> None:
    """Markers are left out as ever, but of aborted transactions nothing is known."""
    committed = buffer.committed

    def all_data(batches: Iterable[Batch], _: Sequence[AbortedTransaction]) -> Iterator[Batch]:
        return committed(batches, ())

    _replace(buffer, committed=all_data)


def _retry_without_new_epoch() -> None:
    """A doubtful transaction is tried again as the same producer, instead of finding out what became of it."""
    commit = Lane.commit

    async def insist(self: Lane, *arguments: Any) -> Any:
        kept = dict(vars(self))
        state = self.state
        try:
            return await commit(self, *arguments)
        except Unreachable:
            vars(self).update(kept, _machine=StateMachine(LANE, state))
            return await commit(self, *arguments)

    _replace(Lane, commit=insist)


def _missing_position_taken_for_the_start() -> None:
    """Against invariant H: nobody asks how the link was made, nor looks at copies that no position accounts for."""

    def judge_new(replica: Replica, _: Position | None, facts: Facts) -> Verdict:
        begin = facts.begins.places[replica.source]
        return Verdict(Position(replica.source_id, replica.destination_id, *begin))

    def partitions_now(topic: PositionsTopic) -> int:
        return len(topic.checkpoints)

    _replace(judgement, judge_new=judge_new)
    _replace(link_facts, link_fault=lambda *_: "")
    _replace(PositionsTopic, lanes=property(partitions_now))


def _registry_ignored() -> None:
    """Against invariant I: every copy is taken for this link's own."""
    _replace(ClaimLedger, of_others=lambda *_: {})


def _loss_overlooked() -> None:
    """Against invariant J: a copy ends where it ends, wherever that was before."""
    examine, offsets = CopyExaminer.examine, writer._offsets

    async def by_their_ends(self: CopyExaminer, copies: Mapping[Partition, CopyEnd | None]) -> CopyEnds:
        return await examine(self, dict.fromkeys(copies))

    async def wherever(sent: writer._PendingProduce) -> dict[Partition, int]:
        return await offsets(sent._replace(bases={}))

    _replace(CopyExaminer, examine=by_their_ends)
    _replace(writer, _offsets=wherever)


def _new_partition_begun_at_its_end() -> None:
    """Against invariant K: a partition that was added begins where it ends when it is found."""
    try_offsets = admission.try_offsets

    async def ends(cluster: KafkaCluster, metadata: Metadata, partitions: Collection[Partition], _: Bound) -> Any:
        return await try_offsets(cluster, metadata, partitions, Bound.STABLE_END)

    _replace(admission, try_offsets=ends)


MUTATIONS = {
    "position committed separately": _position_committed_separately,
    "read before fencing": _read_before_fencing,
    "an aborted batch let through": _aborted_let_through,
    "a retry without a new epoch": _retry_without_new_epoch,
    "a missing position taken for the start": _missing_position_taken_for_the_start,
    "the registry ignored": _registry_ignored,
    "a loss overlooked": _loss_overlooked,
    "a new partition begun at its end": _new_partition_begun_at_its_end,
}


def _replace(owner: object, **functions: object) -> None:
    for name, function in functions.items():
        _replaced.append((owner, name, vars(owner)[name]))
        setattr(owner, name, function)


def _nothing_to_answer() -> "asyncio.Future[ProduceResponse]":
    answer: asyncio.Future[ProduceResponse] = asyncio.get_running_loop().create_future()
    answer.set_result(ProduceResponse(responses=()))
    return answer


async def _insist(ask: Callable[[], Any]) -> Any:
    while True:
        try:
            return await ask()
        except BrokerBusy:
            await asyncio.sleep(0.01)
