"""The link record on real brokers, and the refusal of a link that does not fit it."""

import asyncio
import dataclasses
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from kio.schema.end_txn.v3 import EndTxnRequest, EndTxnResponse
from kio.schema.errors import ErrorCode

from appliance.commands.positions_adoption import adopt_positions
from appliance.driver.establish import Establishing, OwnTopics
from appliance.engine.write.lane import Lane
from appliance.errors import LinkRefused
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.link.handle import Link
from appliance.link.model.checkpoint import Owner
from appliance.link.model.checkpoint_records import encode_position
from appliance.link.model.layout import Layout
from appliance.verify.verification import Verification
from tests.support.administration import configure, grow, topics
from tests.support.engine import LANES, Engine, Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.verifying import results_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

LATEST = {"REPLICA_TOPICS_START": "latest"}


async def establish_late(engine: Engine, **variables: str) -> None:
    """Establish the link, and then discover topics."""
    await engine.establish(**variables)
    await engine.assign()


async def test_case_13_a_partition_added_under_latest_is_copied_from_its_first_record(pair: Pair) -> None:
    # Before, copying began at its end when it was found, and status said that everything was copied.
    topic = pair.filled("grows", 10)
    async with pair.engine() as engine:
        await establish_late(engine, **LATEST)
        pair.write(topic, 5)
        await engine.copy_all()
        grow(pair.orange, topic, 3)
        for partition in (1, 2):
            produce(pair.producer(), topic, 100, partition)
        await engine.assign()
        await engine.copy_all()
    assert pair.copy_counts(topic, 3) == [5, 100, 100]


async def test_latest_begins_where_the_partitions_ended_when_the_link_was_made_whoever_goes_on(pair: Pair) -> None:
    # The first start is killed before it commits a position; records that are produced before the second are copied.
    topic = pair.topic("begun", 2)
    pair.write(topic, 10)
    async with pair.engine() as first:
        await first.establish(**LATEST)
    pair.write(topic, 7)
    produce(pair.producer(), topic, 3, partition=1)
    async with pair.engine() as second:
        await establish_late(second)
        await second.copy_all()
    assert pair.copy_counts(topic, 2) == [7, 3]


@pytest.mark.parametrize("age", [True, False])
async def test_a_link_of_the_newest_records_begins_at_that_time_and_verify_knows_where(pair: Pair, age: bool) -> None:
    topic, hour, now = pair.topic("dated", 2), 3_600_000, int(time.time() * 1000)
    producer = pair.producer()
    for back in (3, 2, 1, 0):
        producer.produce(topic, b"%d" % back, partition=0, timestamp=now - back * hour)
        producer.produce(topic, b"old", partition=1, timestamp=now - 3 * hour)
        assert producer.flush(PATIENCE) == 0
    since = datetime.fromtimestamp(now / 1000 - 5400, UTC).isoformat()
    async with pair.engine() as engine:
        await establish_late(engine, REPLICA_TOPICS_START="90m" if age else since)
        await engine.copy_all()
        assert pair.copy_counts(topic, 2) == [2, 0]
        produce(pair.producer(), later := pair.topic("later"), 3)
        produce(pair.producer(), topic, 1, partition=1)
    async with pair.engine() as again:
        await establish_late(again)
        await again.copy_all()
        assert pair.copy_counts(topic, 2) == [2, 1]
        assert pair.copy_counts(later) == [3]
        run = Verification(Link(again.source, again.destination, pair.naming))
        verdicts = {(each.topic, each.partition): each.words for each in await results_of(run, [], 0)}
    assert verdicts == {
        (topic, 0): "equal from source offset 2",
        (topic, 1): "equal from source offset 4",
        (later, 0): "equal",
    }


async def test_a_link_of_records_from_the_future_on_is_refused(pair: Pair) -> None:
    async with pair.engine() as engine:
        with pytest.raises(LinkRefused, match="REPLICA_TOPICS_START=2999-01-01: expected a time in the past"):
            await engine.establish(REPLICA_TOPICS_START="2999-01-01")


async def test_of_a_start_that_was_killed_before_the_link_was_made_the_next_one_has_the_choice(pair: Pair) -> None:
    topic = pair.filled("chosen", 10)
    async with pair.engine() as killed:
        await killed.establish_topic_alone()
    pair.write(topic, 10)
    async with pair.engine() as engine:
        await establish_late(engine, **LATEST)
        pair.write(topic, 5)
        await engine.copy_all()
    assert pair.copy_counts(topic) == [5]


async def test_two_first_starts_with_different_lanes_make_one_link(pair: Pair) -> None:
    topic = pair.filled("twice", 10, 8)
    async with pair.engine() as one, pair.engine() as other:
        await asyncio.gather(one.establish(LANES="2"), other.establish(LANES="5"))
        assert one.layout == other.layout
        assert one.layout.lanes in (2, 5)
        await other.assign()
        await other.copy_all()
    pair.compare(topic, 8)


@pytest.mark.parametrize("committed", [True, False])
async def test_case_30_a_first_start_whose_commit_is_in_doubt_finds_out_what_became_of_it(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    # A coordinator answers UNKNOWN_SERVER_ERROR while another start takes the id; before, this ended the replicator.
    doubts = [ErrorCode.unknown_server_error] * 4
    call = BrokerConnection.call

    async def in_doubt(
        connection: BrokerConnection, request: Any, response_type: Any, timeout: float | None = None
    ) -> Any:
        if not isinstance(request, EndTxnRequest) or not doubts:
            return await call(connection, request, response_type, timeout)
        if committed:
            await call(connection, request, response_type, timeout)
        return EndTxnResponse(throttle_time=milliseconds(0), error_code=doubts.pop())

    pair.topic("doubted", 2)
    async with pair.engine() as engine:
        await engine.establish_topic_alone()
        monkeypatch.setattr(BrokerConnection, "call", in_doubt)
        settings = pair.settings()
        establishing = Establishing(settings, engine.link(settings), engine.run)
        established = await establishing.establish()
        assert established.layout.lanes == LANES
        assert not doubts


@pytest.fixture
def lagging(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Topics that the next answer hides: the positions topic, after it was made."""
    hidden: list[str] = []
    ask, make_positions = KafkaCluster.metadata, OwnTopics.make_positions

    async def of_the_past(cluster: KafkaCluster, topics: Sequence[str] | None) -> Metadata:
        answer = await ask(cluster, topics)
        name = hidden.pop() if hidden and topics == hidden else ""
        return dataclasses.replace(answer, topics={n: topic for n, topic in answer.topics.items() if n != name})

    async def made(own: OwnTopics) -> None:
        await make_positions(own)
        hidden.append(pair.naming.positions_topic)

    monkeypatch.setattr(KafkaCluster, "metadata", of_the_past)
    monkeypatch.setattr(OwnTopics, "make_positions", made)
    return hidden


async def test_case_29_a_broker_that_does_not_show_the_positions_topic_yet_makes_no_link_without_lanes(
    pair: Pair, lagging: list[str]
) -> None:
    # Before, a link with 0 lanes was recorded, and every later start refused it.
    pair.topic("lagging", 2)
    async with pair.engine() as engine:
        await engine.establish()
        assert engine.lanes == LANES
        assert not lagging


async def test_case_29_nor_does_one_that_lags_when_positions_are_adopted(pair: Pair, lagging: list[str]) -> None:
    pair.filled("lagging", 10, 2)
    await pair.copy_all()
    pair.delete_positions()
    told: list[str] = []
    assert await adopt_positions(pair.settings(), told.append) == 1
    assert f"{LANES} partitions, {LANES} lanes" in told[-1]
    assert not lagging


async def test_a_positions_topic_that_was_grown_is_refused_and_adopted_as_it_was(pair: Pair) -> None:  # invariant H
    topic = pair.filled("lanes", 10, 8)
    await pair.copy_all()
    await asyncio.to_thread(grow, pair.grape, pair.naming.positions_topic, LANES + 1)
    async with pair.engine() as engine:
        with pytest.raises(LinkRefused, match=rf"has {LANES + 1} partitions, and had {LANES}.*--adopt-positions"):
            await engine.establish()
    told: list[str] = []
    assert await adopt_positions(pair.settings(), told.append, only_plan=True) == 1
    async with pair.engine() as engine:
        with pytest.raises(LinkRefused):
            await engine.establish()
    assert await adopt_positions(pair.settings(), told.append) == 1
    assert await adopt_positions(pair.settings(), told.append) == 0
    await write_and_copy(pair, topic, 8)
    assert pair.copy_counts(topic, 8) == [20] * 8
    pair.compare(topic, 8)


async def test_a_positions_topic_that_was_deleted_is_refused_as_long_as_there_are_copies(pair: Pair) -> None:
    topic = pair.filled("deleted", 10, 2)
    await pair.copy_all()
    pair.delete_positions()
    assert await adopt_positions(pair.settings(), lambda _: None, only_plan=True) == 1
    assert pair.naming.positions_topic not in topics(pair.grape)
    async with pair.engine() as engine:
        with pytest.raises(LinkRefused, match=r"was deleted or made anew: it remembers nothing.*--adopt-positions"):
            await engine.establish()
    assert await adopt_positions(pair.settings(), lambda _: None) == 1
    async with pair.engine() as engine:
        await engine.prepare()
        fault = await engine.until_all_stopped(topic, 2)
        assert "ends at offset" in fault
        assert "no position says how far" in fault
        assert f"--topic-name={topic} --partition" in fault
    assert pair.copy_counts(topic, 2) == [10, 10]


async def test_a_positions_topic_that_may_be_deleted_by_retention_is_refused(pair: Pair) -> None:  # invariant H
    pair.filled("retention", 10)
    await pair.copy_all()
    for policy in ("delete", "compact,delete"):
        configure(pair.grape, pair.naming.positions_topic, **{"cleanup.policy": policy})
        async with pair.engine() as engine:
            with pytest.raises(LinkRefused, match=f"cleanup.policy={policy}.*kafka-configs.sh --alter"):
                await engine.establish()


async def test_a_position_in_another_lanes_partition_is_refused_and_forgotten_when_adopted(pair: Pair) -> None:
    topic = pair.filled("misplaced", 10)
    await pair.copy_all()
    wrong = (Layout(LANES).lane_of(topic, 0) + 1) % LANES
    async with pair.engine() as engine:
        held = (await engine.positions())[topic, 0]
        lane = Lane(wrong, engine.destination, pair.naming, Owner("r", "w", "h", 0, 1), 30.0)
        await lane.start()
        await lane.remember([encode_position(Partition(topic, 0), dataclasses.replace(held, next_offset=3), 1)])
        with pytest.raises(LinkRefused, match=f"-{wrong} holds the position of {topic}-0, which belongs into"):
            await engine.establish()
    assert await adopt_positions(pair.settings(), lambda _: None) > 0
    await write_and_copy(pair, topic, 1)
    assert pair.copy_counts(topic) == [20]


async def test_another_source_cluster_under_the_same_id_is_refused(pair: Pair) -> None:
    pair.filled("other", 10)
    await pair.copy_all()
    swapped = Pair(pair.grape, pair.grape, pair.tag)
    async with swapped.engine() as engine:
        with pytest.raises(LinkRefused, match=r"the link was made with source cluster .* lead to"):
            await engine.establish()


async def test_a_link_of_an_older_release_goes_on(pair: Pair) -> None:
    # It has positions, but no link record.
    topic = pair.filled("older", 10, 8)
    async with pair.engine() as engine:
        await engine.prepare_as_an_older_release()
        await engine.copy_all()
    await write_and_copy(pair, topic, 8)
    assert pair.copy_counts(topic, 8) == [20] * 8


async def write_and_copy(pair: Pair, topic: str, partitions: int) -> None:
    pair.write(topic, 10, partitions)
    await pair.copy_all()
