"""The engine made wrong, each time in one way, to show that the checker finds it."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from kio.schema.produce.v9 import ProduceResponse

from appliance.errors import BrokerBusy, Unreachable
from appliance.kafka.batch import Batch
from appliance.kafka.committed import Aborted
from appliance.kafka.connection import BrokerConnection
from appliance.kafka.offsets import Partition
from appliance.kafka.produce import Copy
from appliance.kafka.transactions import Producer
from appliance.replicator import buffer, lane, writer
from appliance.replicator.memory import Memory
from appliance.replicator.recall import peek_memory
from appliance.replicator.states import LANE, Machine
from tests.faults.injection import switches
from tests.faults.injection.crashes import is_positions

_LATE = 3.0
"""Seconds that pass between reading and fencing, when that is the order."""


def patch() -> None:
    """Give this process the mutation that its environment asks for, if any."""
    name = switches.mutation()
    if name:
        MUTATIONS[name]()


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


def _read_before_fencing() -> None:
    """Against invariant C: what the predecessor commits between the two is not known to the lane."""
    take_id = lane.Lane._take_id

    async def promise(self: lane.Lane) -> Producer:
        return Producer(self._transactional_id, -1, -1)

    async def read_first(self: lane.Lane, _: Producer) -> Memory:
        topic, index = self._positions
        remembered = Memory()
        await peek_memory(self._cluster, topic, index, remembered)
        await asyncio.sleep(_LATE)
        producer = await _insist(lambda: take_id(self))
        metadata = await self._cluster.metadata([topic])
        self._writer = writer.Writer(self._cluster, producer, self._positions, metadata, self._timeout)
        self._named = False
        return remembered

    _replace(lane.Lane, _take_id=promise, _read_memory=read_first)


def _aborted_let_through() -> None:
    """Markers are left out as ever, but of aborted transactions nothing is known."""
    committed = buffer.committed

    def all_data(batches: Iterable[Batch], _: Sequence[Aborted]) -> Iterator[Batch]:
        return committed(batches, ())

    _replace(buffer, committed=all_data)


def _retry_without_new_epoch() -> None:
    """A doubtful transaction is tried again as the same producer, instead of finding out what became of it."""
    commit = lane.Lane.commit

    async def insist(self: lane.Lane, *arguments: Any) -> Any:
        kept = dict(vars(self))
        state = self.state
        try:
            return await commit(self, *arguments)
        except Unreachable:
            vars(self).update(kept, _machine=Machine(LANE, state))
            return await commit(self, *arguments)

    _replace(lane.Lane, commit=insist)


MUTATIONS = {
    "position committed separately": _position_committed_separately,
    "read before fencing": _read_before_fencing,
    "an aborted batch let through": _aborted_let_through,
    "a retry without a new epoch": _retry_without_new_epoch,
}


def _replace(owner: object, **functions: object) -> None:
    for name, function in functions.items():
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
