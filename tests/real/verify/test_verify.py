"""The verification on real brokers: equal copies, and every kind of difference, each with its own words."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from appliance.errors import PartitionStopped
from appliance.kafka.protocol.metadata import Partition
from appliance.link.handle import Link
from appliance.logs.model.span import CopyState, Span
from appliance.logs.reader import LogReader
from appliance.verify.model.report import NEWEST_RECORDS, PartitionResult
from appliance.verify.sql import Evaluate
from appliance.verify.verification import Verification
from testbed.cluster import Cluster
from tests.support.administration import delete_before
from tests.support.engine import Engine, Pair
from tests.support.patience import PATIENCE
from tests.support.rows import Row, end
from tests.support.verifying import results_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def produce(pair: Pair, topic: str, count: int, first: int = 0, partition: int = 0, **how: str | int | bool) -> None:
    producer = pair.producer(**how)
    for number in range(first, first + count):
        key = None if number % 3 == 0 else b"key %d" % number
        producer.produce(topic, b"value %d" % number * 20, key, partition, headers=[("h", b"%d" % number)])
    assert producer.flush(PATIENCE) == 0


def write(cluster: Cluster, topic: str, rows: Sequence[Row], pair: Pair) -> None:
    """Write these rows unchanged, by a producer of our own."""
    producer = pair.producer(**cluster.client_configuration())
    for partition, key, value, headers, (_, timestamp) in rows:
        producer.produce(topic, value, key, partition, headers=headers or [], timestamp=timestamp)
    assert producer.flush(PATIENCE) == 0


async def verify(
    engine: Engine, topics: Sequence[str] = (), wait: float = 0.0, evaluate: Evaluate | None = None
) -> dict[tuple[str, int | None], PartitionResult]:
    """The verdicts, by topic (without the test's tag) and partition."""
    steps: list[tuple[int, int]] = []
    run = Verification(Link(engine.source, engine.destination, engine.pair.naming))
    verdicts = await results_of(run, topics, wait, evaluate, lambda done, total: steps.append((done, total)))
    assert all(done <= total for done, total in steps)
    assert not steps or steps[-1][0] == steps[-1][1]
    return {(v.topic.removesuffix(f"-{engine.pair.tag}"), v.partition): v for v in verdicts}


async def test_the_engines_copies_are_equal_with_batches_of_every_kind(pair: Pair) -> None:
    for codec in CODECS:
        topic = pair.topic(codec, 2)
        for partition in range(2):
            produce(pair, topic, 400, partition=partition, **{"compression.type": codec})
    tiny = pair.topic("tiny")
    produce(pair, tiny, 300, **{"batch.num.messages": 1, "linger.ms": 0})
    produce(pair, pair.topic("append", **{"message.timestamp.type": "LogAppendTime"}), 300)
    pair.topic("empty", 3)
    transactions = pair.topic("transactions")
    producer = pair.producer(**{"transactional.id": transactions})
    producer.init_transactions(PATIENCE)
    for turn in range(6):
        producer.begin_transaction()
        for number in range(20):
            producer.produce(transactions, b"%d of %d" % (number, turn))
        producer.flush(PATIENCE)
        producer.commit_transaction(PATIENCE) if turn % 2 else producer.abort_transaction(PATIENCE)
    async with pair.engine() as engine:
        await engine.copy_all()
        found = await verify(engine)
    assert {verdict.state for verdict in found.values()} == {CopyState.EQUAL}
    assert {verdict.detail for verdict in found.values()} == {""}
    counts = {key: verdict.records for key, verdict in found.items()}
    assert counts == {
        **{(codec, partition): 400 for codec in CODECS for partition in range(2)},
        ("tiny", 0): 300,
        ("append", 0): 300,
        ("transactions", 0): 60,
        **{("empty", partition): 0 for partition in range(3)},
    }
    assert found["transactions", 0].source == Span(0, end(pair.orange, transactions, 0))


async def test_a_copy_that_stopped_is_behind_by_what_came_since(pair: Pair) -> None:
    topic = pair.topic("stopped")
    produce(pair, topic, 500)
    async with pair.engine() as engine:
        await engine.copy_all()
        produce(pair, topic, 123, 500)
        verdict = (await verify(engine))["stopped", 0]
        assert (verdict.state, verdict.behind, verdict.records) == (CopyState.BEHIND, 123, 500)
        assert verdict.source == Span(0, 500)


async def test_a_link_that_is_running_is_given_the_time_to_catch_up(pair: Pair) -> None:
    topic = pair.topic("running")
    produce(pair, topic, 500)
    async with pair.engine() as engine:
        await engine.copy_all()
        produce(pair, topic, 500, 500)
        verifying = asyncio.create_task(verify(engine, wait=PATIENCE), name="verifying")
        await asyncio.sleep(0.3)
        assert not verifying.done()

        async def verified() -> None:
            await asyncio.wait([verifying])

        await engine.copy_until(asyncio.create_task(verified(), name="verified"))
        verdict = verifying.result()["running", 0]
    assert (verdict.state, verdict.records) == (CopyState.EQUAL, 1000)


async def test_case_1040_nothing_is_waited_for_where_the_source_has_nothing(pair: Pair) -> None:
    # One topic without records let each verification last for as long as it may wait.
    pair.topic("empty")
    shortened = pair.topic("shortened")
    produce(pair, shortened, 3)
    delete_before(pair.orange, shortened, 0, 3)
    async with pair.engine() as engine:
        await engine.copy_all()
        async with asyncio.timeout(PATIENCE):
            found = await verify(engine, wait=3600.0)
    assert (found["empty", 0].state, found["empty", 0].records) == (CopyState.EQUAL, 0)
    assert found["shortened", 0].records == 0


async def test_a_record_that_somebody_else_wrote_to_the_copy_is_found_where_it_stands(pair: Pair) -> None:
    topic = pair.topic("stray")
    produce(pair, topic, 50)
    async with pair.engine() as engine:
        await engine.copy_all()
        write(pair.grape, pair.naming.destination(topic), [(0, b"stray", b"stray", None, (1, 1_700_000_000_000))], pair)
        at_the_end = (await verify(engine))["stray", 0]
        assert (at_the_end.state, at_the_end.differs_at, at_the_end.records) == (CopyState.DIFFERS, 50, 50)
        assert "1 record more at its end" in at_the_end.detail
        produce(pair, topic, 50, 50)
        await engine.copy_all()
        amid = (await verify(engine))["stray", 0]
        assert (amid.state, amid.differs_at, amid.records) == (CopyState.DIFFERS, 50, 50)
        assert "the destination has 1 record more" in amid.detail


async def test_what_the_sources_retention_took_is_named_and_the_rest_is_equal(pair: Pair) -> None:
    for name, configuration in (("raw", {}), ("joined", {"batch.num.messages": 1, "linger.ms": 0})):
        produce(pair, pair.topic(name), 500, **configuration)
    async with pair.engine() as engine:
        await engine.copy_all()
        for name, offset in (("raw", 77), ("joined", 499)):
            delete_before(pair.orange, f"{name}-{pair.tag}", 0, offset)
        found = await verify(engine)
        for name, offset in (("raw", 77), ("joined", 499)):
            verdict = found[name, 0]
            assert (verdict.state, verdict.records, verdict.source) == (
                CopyState.EQUAL,
                500 - offset,
                Span(offset, 500),
            )
            assert "were not compared" in verdict.detail
        delete_before(pair.orange, f"raw-{pair.tag}", 0, 500)
        verdict = (await verify(engine))["raw", 0]
        assert (verdict.state, verdict.records) == (CopyState.NOT_COMPARED, 0)
        assert "500 records of the destination" in verdict.detail
        assert "have no source any more" in verdict.detail


async def test_case_832_a_copy_without_its_beginning_is_told_by_what_the_link_was_made_for(pair: Pair) -> None:
    # Before, REPLICA_TOPICS_START of the settings said so: a loss was "equal" with latest, a right copy no more later.
    topic = pair.topic("late")
    produce(pair, topic, 200)
    async with pair.engine() as engine:
        await engine.establish(REPLICA_TOPICS_START="latest")
        await engine.assign()
        asked = (await verify(engine))["late", 0]
        assert (asked.state, asked.records) == (CopyState.EQUAL_IN_PART, 0)
        produce(pair, topic, 300, 200)
        await engine.copy_all()
        asked = (await verify(engine))["late", 0]
        assert (asked.words, asked.records) == ("equal from source offset 200", 300)
    lost = pair.topic("lost")
    produce(pair, lost, 500)
    pair.make_copy(lost, 1)
    write(pair.grape, pair.naming.destination(lost), pair.rows(pair.orange, lost, 1)[0][200:], pair)
    for deleted, told in ((0, ""), (5, ": of 200 records, its retention can have taken 5")):
        delete_before(pair.grape, pair.naming.destination(lost), 0, deleted)
        async with pair.engine() as engine:
            found = (await verify(engine, [lost]))["lost", 0]
        assert (found.state, found.differs_at) == (CopyState.DIFFERS, 0)
        assert found.detail == f"source records before offset {200 + deleted} are not at the destination{told}".replace(
            "200 records", f"{200 + deleted} records"
        )


async def test_topics_and_partitions_without_a_counterpart_are_named(pair: Pair) -> None:
    pair.topic("alone")
    narrow, wide = pair.topic("narrow", 3), pair.topic("wide", 1)
    pair.make_copy(narrow, 2)
    pair.make_copy(wide, 3)
    write(pair.grape, pair.naming.destination(wide), [(2, None, b"stray", None, (1, 1))], pair)
    async with pair.engine() as engine:
        for topic in (narrow, wide):
            await engine.until_led(topic)
        found = await verify(engine)
    assert found["alone", None].state is CopyState.NO_COPY
    assert [found["narrow", partition].state for partition in range(3)] == [
        CopyState.EQUAL,
        CopyState.EQUAL,
        CopyState.NO_COPY,
    ]
    assert found["narrow", 2].detail.endswith(".copy has 2 partitions")
    assert found["wide", 0].state is CopyState.EQUAL
    assert found["wide", 2].state is CopyState.DIFFERS
    assert found["wide", 2].detail == "the source topic has no such partition"
    assert ("wide", 1) not in found


async def test_of_a_compacted_topic_the_newest_record_of_each_key_is_compared(pair: Pair) -> None:
    compaction = {
        "cleanup.policy": "compact",
        "segment.ms": "200",
        "min.cleanable.dirty.ratio": "0.001",
        "max.compaction.lag.ms": "200",
    }
    topic = pair.topic("users", **compaction)
    producer = pair.producer()

    def update(value: int, keys: int = 20) -> None:
        for key in range(keys):
            producer.produce(topic, b"%d" % value, b"key %d" % key)
        assert producer.flush(PATIENCE) == 0

    async with pair.engine() as engine:
        for value in range(5):
            update(value)
        await engine.copy_all()
        async with asyncio.timeout(PATIENCE):  # each side is compacted when the cleaner has time
            while len(pair.rows(pair.orange, topic, 1)[0]) == 100:
                time.sleep(0.3)
                update(9, 1)
                await engine.copy_all()
        verdict = (await verify(engine, wait=1))["users", 0]
        assert (verdict.state, verdict.records, verdict.compared) == (CopyState.EQUAL, 20, NEWEST_RECORDS)
        update(10, 7)
        verdict = (await verify(engine))["users", 0]
        assert (verdict.state, verdict.behind) == (CopyState.BEHIND, 7)


async def test_retention_that_overtakes_the_reading_is_told(pair: Pair) -> None:
    topic = pair.topic("overtaken")
    produce(pair, topic, 50)
    delete_before(pair.orange, topic, 0, 30)
    async with pair.engine() as engine:
        reader = LogReader(engine.source, Partition(topic, 0), "verify", 0)
        with pytest.raises(PartitionStopped, match="holds no offset 0 any more"):
            await reader.read()
        assert sum(batch.header.records for batch in await reader.at(50 - 1).read()) > 0
