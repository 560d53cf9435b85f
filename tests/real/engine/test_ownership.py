"""The ownership of a lane, on real brokers: the owner writes, the former owner is fenced, and nothing is lost."""

import asyncio
from typing import Any

import pytest
from kio.schema.describe_transactions.v0 import DescribeTransactionsRequest, DescribeTransactionsResponse
from kio.schema.types import TransactionalId

from appliance.engine.write import ownership
from appliance.engine.write.lane import Lane
from appliance.errors import ApplianceError, Fenced, Unreachable
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.transactions import add_partitions
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.retry import is_completing, retry_while_busy
from appliance.link.model.checkpoint import Owner
from appliance.link.model.states import LaneState
from tests.support.engine import Engine, Pair, until
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_of_two_engines_the_older_is_fenced_and_writes_nothing_more(pair: Pair) -> None:  # invariant B
    topic = pair.filled("two", 100)
    async with pair.engine() as older, pair.engine() as newer:
        await older.copy_all()
        await newer.copy_all()
        pair.write(topic, 100)
        await newer.copy_all()
        await older.copy_until(until(lambda: _has_stopped(older)))
        (fenced,) = {str(fault) for fault in older.faults.values() if isinstance(fault, Fenced)}
        assert fenced.endswith(f" by {newer.run} on host since 1970-01-01T00:00:00.000Z")
    assert len(pair.compare(topic)[0]) == 200


async def transaction_state(coordinator: BrokerConnection, transactional_id: str) -> str:
    """A coordinator's description of a transaction."""
    request = DescribeTransactionsRequest(transactional_ids=(TransactionalId(transactional_id),))
    (found,) = (await coordinator.call(request, DescribeTransactionsResponse)).transaction_states
    return found.transaction_state


async def test_a_lane_whose_transaction_the_coordinator_gave_up_begins_anew(pair: Pair) -> None:
    topic = pair.filled("given-up", 10)
    async with pair.engine(transaction_timeout=1.0) as engine:
        await engine.copy_all()
        (runner,) = engine.runners
        lane = runner.lane
        coordinator = await engine.destination.coordinator(pair.naming.transactional_id(lane.index))
        producer, copy = lane.producer, Partition(pair.copy_of(topic), 0)
        await retry_while_busy(lambda: add_partitions(coordinator, producer, [copy]), is_completing)
        async with asyncio.timeout(PATIENCE):
            while await transaction_state(coordinator, producer.transactional_id) != "CompleteAbort":
                await asyncio.sleep(0.05)
        pair.write(topic, 10)
        await engine.copy_all()
    assert len(pair.compare(topic)[0]) == 20


async def test_a_lane_that_has_nothing_to_copy_finds_out_that_it_is_anothers(pair: Pair) -> None:
    pair.filled("idle", 10)
    async with pair.engine() as older, pair.engine() as newer:
        await older.copy_all()
        await older.copy_all()
        await newer.copy_all()
        assert older.runners[0].lane.state is LaneState.COPYING
        stopping = asyncio.Event()
        await asyncio.wait_for(older.runners[0].run(stopping), PATIENCE)
        assert older.runners[0].lane.state is LaneState.FENCED
        assert newer.run in str(older.faults[f"lane {older.runners[0].lane.index}"])


async def test_case_4_of_two_engines_that_start_at_once_one_goes_on(pair: Pair) -> None:  # invariant B
    # Before, each had taken a lane after the other, and both stopped.
    topic = pair.filled("at-once", 10, 16)
    async with pair.engine() as one, pair.engine() as other:
        await one.prepare()
        await other.prepare()
        for ours, theirs in zip(one.runners[::2], other.runners[::2], strict=True):
            await ours.lane.start()
            await theirs.lane.start()
        for ours, theirs in zip(one.runners[1::2], other.runners[1::2], strict=True):
            await theirs.lane.start()
            await ours.lane.start()
        stopped = asyncio.create_task(until(lambda: any(map(_has_stopped, (one, other)))))
        await asyncio.gather(one.copy_until(stopped), other.copy_until(stopped))
        (remaining,) = [engine for engine in (one, other) if not _has_stopped(engine)]
        await remaining.copy_all()
        assert not remaining.faults
    pair.compare(topic, 16)


async def test_case_5_a_record_that_comes_while_an_idle_lane_looks_whose_it_is_goes_to_its_new_owner(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before, the lane found that it had another owner, and still wrote, without a producer id.
    topic = pair.filled("looks", 10)
    async with pair.engine() as older, pair.engine() as newer:
        await older.copy_all()
        (runner,) = older.runners
        running = asyncio.create_task(runner.run(asyncio.Event()), name="older")
        await newer.copy_all()
        look = runner.lane.find_owner

        async def look_slowly() -> Owner | None:
            monkeypatch.undo()
            owner = await look()
            pair.write(topic, 1)
            await until(lambda: bool(runner.ready.buffers_with_chunks))
            return owner

        monkeypatch.setattr(runner.lane, "find_owner", look_slowly)
        await asyncio.wait_for(running, PATIENCE)
        assert runner.lane.state is LaneState.FENCED
        await newer.copy_all()
    assert len(pair.compare(topic)[0]) == 11


async def test_case_1541_a_lane_that_was_cut_off_and_begins_anew_leaves_its_new_owner_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It took the lane from the replicator that copied by then, and from that back again.
    topic = pair.filled("cut-off", 10)
    async with pair.engine() as older, pair.engine() as newer:
        await older.copy_all()
        await newer.copy_all()
        (lane,), (new,) = ([runner.lane for runner in engine.runners] for engine in (older, newer))
        lane.restart()
        monkeypatch.setattr(ownership, "loop_seconds", lambda: asyncio.get_running_loop().time() + 60.0)
        with pytest.raises(Fenced, match=newer.run):
            await lane.start()
        assert lane.state is LaneState.FENCED
        assert newer.run in str(await lane.taken_by())
        pair.write(topic, 10)
        held = new.producer
        await newer.copy_all()
        assert new.producer == held
    assert len(pair.compare(topic)[0]) == 20


async def test_case_7_a_lane_that_could_not_find_out_who_has_it_asks_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before, it remained fenced by an unknown owner, and did not copy until the slice's end.
    produce(pair.producer(), pair.topic("asks"), 10)
    async with pair.engine() as older, pair.engine() as newer:
        await older.copy_all()
        await older.copy_all()
        await newer.copy_all()
        (runner,) = older.runners

        async def out_of_reach() -> ApplianceError | None:
            monkeypatch.undo()
            raise Unreachable("the destination")

        monkeypatch.setattr(runner.lane, "taken_by", out_of_reach)
        await asyncio.wait_for(runner.run(asyncio.Event()), PATIENCE)
        assert newer.run in str(older.faults[f"lane {runner.lane.index}"])


async def test_case_18_a_start_that_another_overtook_is_fenced_and_takes_nothing_for_a_hanging_transaction(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before, it looked for its own mark, which another's had replaced, and told the operator to abort a live
    # transaction.
    pair.topic("overtaken")
    async with pair.engine() as engine:
        await engine.establish()
        owners = [Owner(run, "driver", "host", 0, 1) for run in ("one", "other")]
        one, other = (Lane(0, engine.destination, pair.naming, owner, 60.0) for owner in owners)
        read = ownership.read_checkpoint

        async def read_later(*arguments: Any) -> None:
            monkeypatch.undo()
            await other.start()
            await read(*arguments)

        monkeypatch.setattr(ownership, "read_checkpoint", read_later)
        with pytest.raises(Fenced):
            await one.start()
        assert (one.state, other.state) == (LaneState.FENCED, LaneState.COPYING)


def _has_stopped(engine: Engine) -> bool:
    return any(runner.lane.state is LaneState.FENCED for runner in engine.runners)
