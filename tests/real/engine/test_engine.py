"""The engine on real brokers: every kind of batch, and interruptions."""

import asyncio
import random

import pytest

from appliance.engine.write.lane_partitions import LanePartitions
from appliance.errors import CopyRefused
from appliance.kafka.client.produce import append
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, body
from appliance.settings.values import OnGap
from tests.support.administration import configure, delete_before
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("codec", CODECS)
async def test_every_codec_is_copied_record_for_record(pair: Pair, codec: str) -> None:
    topic = pair.topic(codec, 2)
    producer = pair.producer(**{"compression.type": codec})
    for partition in range(2):
        produce(producer, topic, 500, partition)
    assert await pair.copied(topic, 2) == [500, 500]


async def test_tiny_batches_are_copied_record_for_record(pair: Pair) -> None:
    topic = pair.topic("tiny")
    produce(pair.producer(**{"batch.num.messages": 1, "linger.ms": 0}), topic, 500)
    assert await pair.copied(topic) == [500]
    assert end(pair.grape, pair.copy_of(topic), 0) < 600  # including markers: they went in few transactions


async def test_a_large_record_is_copied(pair: Pair) -> None:
    topic = pair.topic("large")
    produce(pair.producer(), topic, 5, size=900_000)
    await pair.copied(topic)


async def test_committed_transactions_are_copied_and_aborted_ones_are_not(pair: Pair) -> None:
    topic = pair.topic("transactions", 2)
    producers = [pair.producer(**{"transactional.id": f"{topic}-{n}"}) for n in range(2)]
    for producer in producers:
        producer.init_transactions(PATIENCE)
    for turn in range(6):
        for producer in producers:
            producer.begin_transaction()
        for partition in range(2):
            for producer in producers:
                produce(producer, topic, 20, partition)
        producers[0].commit_transaction(PATIENCE)
        if turn % 2:
            producers[1].commit_transaction(PATIENCE)
        else:
            producers[1].abort_transaction(PATIENCE)
    assert await pair.copied(topic, 2) == [180, 180]


async def test_nothing_past_an_open_transaction_is_copied_until_it_is_decided(pair: Pair) -> None:
    topic = pair.filled("open", 10)
    opened = pair.producer(**{"transactional.id": topic})
    opened.init_transactions(PATIENCE)
    opened.begin_transaction()
    produce(opened, topic, 10)
    pair.write(topic, 10)

    async def ten_are_there() -> None:
        while pair.copy_counts(topic) != [10]:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.5)  # enough time for a record that must not come

    async with pair.engine() as engine:
        await engine.prepare()
        await engine.copy_until(ten_are_there())
        assert pair.copy_counts(topic) == [10]
        opened.commit_transaction(PATIENCE)
        await engine.copy_all()
    assert len(pair.compare(topic)[0]) == 30


async def test_log_append_time_is_kept_as_the_records_time(pair: Pair) -> None:
    topic = pair.filled("append", 100, **{"message.timestamp.type": "LogAppendTime"})
    await pair.copy_all()
    (source,), (copy,) = pair.rows(pair.orange, topic, 1), pair.rows(pair.grape, pair.copy_of(topic), 1)
    # The timestamp's type cannot be kept, because no producer may write LogAppendTime.
    assert [(row[:4], row[4][1]) for row in copy] == [(row[:4], row[4][1]) for row in source]


async def test_a_second_engine_goes_on_where_the_first_one_stopped(pair: Pair) -> None:
    topic = pair.topic("resumed", 3)
    for turn in range(3):
        for partition in range(3):
            produce(pair.producer(), topic, 100 + turn, partition)
        async with pair.engine() as engine:
            await engine.copy_all()
            positions = await engine.positions()
            assert {key: held.next_offset for key, held in positions.items()} == {
                Partition(topic, partition): end(pair.orange, topic, partition) for partition in range(3)
            }
    assert [len(rows) for rows in pair.compare(topic, 3)] == [303, 303, 303]


async def test_engines_that_are_cut_off_at_any_await_lose_and_double_nothing(pair: Pair) -> None:  # invariants A, C
    topic = pair.topic("cut", 2)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    producer = pair.producer(**{"compression.type": "lz4"})
    for _ in range(12):
        for partition in range(2):
            produce(producer, topic, 300, partition)
        async with pair.engine() as engine:
            await engine.prepare()
            running = [asyncio.create_task(runner.run(asyncio.Event())) for runner in engine.runners]
            await asyncio.sleep(chance.uniform(0, 0.15))
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
    assert await pair.copied(topic, 2) == [3600, 3600], f"seed {seed}"


async def test_a_source_topic_made_anew_under_its_name_is_not_spliced_on(pair: Pair) -> None:  # invariant G
    topic = pair.filled("anew", 10)
    await pair.copy_all()
    pair.delete(topic)
    pair.topic("anew")
    pair.write(topic, 20)
    assert "deleted and made anew" in await pair.stopped(topic)
    assert pair.copy_counts(topic) == [10]
    async with pair.engine(on_gap=OnGap.RECORD) as engine:
        await engine.copy_all()
        (gap,) = await engine.gaps()
        assert (gap.partition, gap.first, gap.next) == (Partition(topic, 0), 10, -1)
    assert pair.copy_counts(topic) == [30]


async def test_a_gap_stops_the_partition_or_is_written_down_as_the_operator_has_chosen(pair: Pair) -> None:
    topic = pair.filled("gap", 10, 2)
    await pair.copy_all()
    pair.write(topic, 10, 2)
    delete_before(pair.orange, topic, 0, 15)
    async with pair.engine() as engine:
        fault = await engine.until_stopped(topic)
        assert str(fault) == f"{topic}-0: offsets 10 to 14 were deleted at the source before they were copied"
        assert await engine.gaps() == []
    assert pair.copy_counts(topic, 2) == [10, 20]
    async with pair.engine(on_gap=OnGap.RECORD) as engine:
        await engine.copy_all()
        (gap,) = await engine.gaps()
        assert (gap.partition, gap.first, gap.next, gap.cause) == (Partition(topic, 0), 10, 15, "deleted at the source")
        assert (await engine.positions())[topic, 0].stopped == ""
    assert pair.copy_counts(topic, 2) == [15, 20]


async def test_a_batch_that_is_too_large_for_the_destination_is_split(pair: Pair) -> None:
    topic = pair.topic("split")
    pair.make_copy(topic, 1, **{"max.message.bytes": "20000"})
    produce(pair.producer(**{"linger.ms": 200}), topic, 300, size=1000)
    await pair.copied(topic)


async def test_a_record_that_is_too_large_stops_its_partition_alone_until_the_copy_takes_it(pair: Pair) -> None:
    topic = pair.topic("oversize", 2)
    pair.make_copy(topic, 2, **{"max.message.bytes": "20000"})
    pair.write(topic, 10)
    large = pair.producer()
    large.produce(topic, bytes(range(256)) * 200, partition=0)
    large.flush(PATIENCE)
    pair.write(topic, 10)
    produce(pair.producer(), topic, 50, partition=1)
    async with pair.engine() as engine:
        fault = str(await engine.until_stopped(topic))
        assert f"{topic}-0 offset 10 is refused" in fault
        assert "MESSAGE_TOO_LARGE" in fault
        assert f"raise max.message.bytes of {pair.copy_of(topic)}" in fault
        assert pair.copy_counts(topic, 2) == [10, 50]
        configure(pair.grape, pair.copy_of(topic), **{"max.message.bytes": "200000"})
        await engine.copy_all()
        assert (await engine.positions())[topic, 0].stopped == ""
    pair.compare(topic, 2)


async def test_case_887_of_a_refused_batch_the_record_that_the_broker_names_is_left_out_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A compacted copy takes no record without a key: the remedy left out the whole batch of it.
    topic = pair.topic("keyless")
    pair.make_copy(topic, 1, **{"cleanup.policy": "compact"})
    producer = pair.producer(**{"linger.ms": 1000, "compression.type": "lz4"})
    for number in range(100):
        producer.produce(topic, b"%d" % number, None if number == 60 else b"key", 0)
    producer.flush(PATIENCE)
    refuse, refused = LanePartitions.refuse, list[range]()

    def refusing(partitions: LanePartitions, error: CopyRefused) -> None:
        refused.append(error.offsets)
        refuse(partitions, error)

    monkeypatch.setattr(LanePartitions, "refuse", refusing)
    reason = await pair.stopped(topic)
    assert reason.startswith(f"{topic}-0 offset 60 is refused: ")
    assert reason.endswith("what follows begins at offset 61")
    assert refused == [range(60, 61)]
    assert pair.copy_counts(topic, 1) == [60]


async def test_case_2_partitions_given_while_the_metadata_is_looked_up_are_read_at_once(pair: Pair) -> None:
    # Before, the reader forgot them, and read them after its next Metadata request, half a minute later.
    topic = pair.filled("many", 5, 12)
    async with pair.engine() as engine:
        await engine.prepare()
        async with asyncio.timeout(PATIENCE):
            await engine.copy_all()
    pair.compare(topic, 12)


async def test_case_1020_times_at_both_ends_of_64_bits_are_copied_as_they_are(pair: Pair) -> None:
    any_time = str(2**63 - 1)
    bounds = {f"message.timestamp.{side}.max.ms": any_time for side in ("after", "before")}
    topic = pair.topic("far", **bounds)
    times = [-9_000_000_000_000_000_000, 9_000_000_000_000_000_000, -5, 1_000]
    async with pair.engine() as engine:
        metadata = await engine.source.metadata([topic])
        for time in times:
            await append(engine.source, metadata, Partition(topic, 0), [Record(0, time, body(b"k", b"v"))])
        async with asyncio.timeout(PATIENCE):
            await engine.copy_all()
    assert len(pair.compare(topic)[0]) == len(times)
