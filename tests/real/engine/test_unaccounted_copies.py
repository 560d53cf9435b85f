"""Copies on real brokers with records that no position covers: nothing is written after these (invariants G, H)."""

import asyncio

import pytest
from confluent_kafka import Producer

from appliance.engine.write.lane import Lane
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import Owner
from appliance.link.model.checkpoint_records import encode_position
from appliance.link.model.layout import Layout
from appliance.settings.values import OnGap
from tests.support.engine import LANES, Pair, until
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_case_31_a_positions_topic_that_lost_all_but_a_copys_first_position_doubles_nothing(pair: Pair) -> None:
    # Before, that position did not record that the copy was empty, so the records after it were copied again.
    topic = pair.topic("first")
    async with pair.engine() as engine:
        await engine.prepare()
        await engine.copy_until(until(lambda: engine.held(topic) is not None))
        first = engine.position(topic)
        pair.write(topic, 10)
        await engine.copy_all()
    async with pair.engine() as engine:
        await engine.establish()
        lane = Lane(Layout(LANES).lane_of(topic, 0), engine.destination, pair.naming, Owner("r", "w", "h", 0, 1), 30.0)
        await lane.start()
        await lane.remember([encode_position(Partition(topic, 0), first, 1)])
        await engine.assign()
        fault = str(await engine.until_stopped(topic))
    assert "holds records from offset 0 on that no position accounts for" in fault
    assert len(pair.compare(topic)[0]) == 10


@pytest.mark.parametrize("is_known", [True, False], ids=["found by discovery", "found by the lane"])
async def test_case_32_a_copy_made_anew_with_records_in_it_is_not_written_behind_them(
    pair: Pair, is_known: bool
) -> None:
    # Before, with ON_GAP=record the source was copied again after these records. A warm lane took them for another
    # writer's, and continued after them as if the earlier records were there.
    topic = pair.topic("filled")
    copy = pair.copy_of(topic)
    pair.write(topic, 10)
    async with pair.engine(on_gap=OnGap.RECORD) as engine:
        await engine.copy_all()
        pair.delete_copy(topic)
        pair.make_copy(topic, 1)
        produce(Producer(pair.grape.client_configuration()), copy, 30)
        pair.write(topic, 5)
        if not is_known:
            await engine.copy_until(engine.until_told(f"{topic}-0", f"{copy} was deleted and made anew"))
        await engine.assign()
        fault = str(await engine.until_stopped(topic))
        assert f"destination topic {copy} was deleted and made anew since it was copied" in fault
        assert "holds records from offset 0 on that no position accounts for" in fault
        assert await engine.gaps() == []
    assert pair.copy_counts(topic) == [30]


async def test_case_39_a_copy_in_which_a_transaction_is_open_is_not_written_to(pair: Pair) -> None:
    # It may be a late batch of this lane's earlier epoch, in a recreated copy; before, the next commit made it visible.
    topic = pair.filled("late", 10)
    await pair.copy_all()
    other = Producer({**pair.grape.client_configuration(), "transactional.id": f"other-{topic}"})
    await asyncio.to_thread(begin_to_write, other, pair.copy_of(topic))
    pair.write(topic, 5)
    async with pair.engine() as engine:
        await engine.prepare()
        await engine.copy_until(engine.until_told(f"{topic}-0", "open transaction below offset"))
        held = engine.position(topic)
        assert held.records == 10
        await asyncio.to_thread(other.abort_transaction, PATIENCE)
        await engine.copy_all()
        assert not engine.faults
    assert len(pair.compare(topic)[0]) == 15


def begin_to_write(producer: Producer, topic: str) -> None:
    """Write a record in a transaction that stays open."""
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce(topic, b"of another", partition=0)
    assert producer.flush(PATIENCE) == 0
