"""Records that SQL in flight fails on, in their topic on a real broker; the SQL itself is a function here."""

from collections.abc import Sequence

import pytest
from confluent_kafka.admin import NewTopic

from appliance.engine.model.ranges import Failure, Outcome, Range
from appliance.engine.write.dead_letters import HEADERS_BYTES
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import key_and_value
from tests.support.administration import configuration, configure, make_topic
from tests.support.engine import Engine, Pair
from tests.support.patience import PATIENCE
from tests.support.record_batches import outgoing_of, records_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMIT = 1_048_588
"""Kafka's default of max.message.bytes."""

BAD = b"bad "
PARTITIONS = 8
"""Enough for each lane to have several."""


class FailsOnBad:
    """A statement that fails on each value that begins with ``BAD``, and passes all others as they are."""

    async def transform(self, ranges: Sequence[Range]) -> list[Outcome]:
        return [self._outcome(each) for each in ranges]

    def _outcome(self, each: Range) -> Outcome:
        records = [record for record in records_of(each.batches) if each.start <= record.offset < each.end]
        failed = [record.offset for record in records if (key_and_value(record.body)[1] or b"").startswith(BAD)]
        passed = [record for record in records if record.offset not in failed]
        batches = outgoing_of(passed, each.end) if passed else ()
        return Outcome(batches, each.end, 0, tuple(Failure(offset, "it is bad") for offset in failed))


def send(
    pair: Pair, topic: str, value: bytes, partition: int = 0, key: bytes | None = b"key", codec: str = "none"
) -> None:
    producer = pair.producer(**{"compression.type": codec, "message.max.bytes": 3_000_000})
    producer.produce(topic, value, key, partition)
    assert producer.flush(PATIENCE) == 0


def send_to_each(pair: Pair, topic: str, value: bytes) -> None:
    for partition in range(PARTITIONS):
        send(pair, topic, value, partition)


def letters(pair: Pair, topic: str) -> str:
    return f"{pair.copy_of(topic)}.dead-letter"


def values(pair: Pair, name: str, partitions: int = 1) -> list[list[bytes | None]]:
    return [[row[2] for row in rows] for rows in pair.rows(pair.grape, name, partitions)]


@pytest.mark.parametrize("older", [False, True], ids=["made now", "made by an older release"])
async def test_case_701_whatever_the_copy_takes_its_dead_letters_topic_takes_too(pair: Pair, older: bool) -> None:
    # Its lane was stopped for ever by one of the first two, and its health was good.
    topic = pair.topic("letters", 2)
    if older:
        make_topic(pair.grape, NewTopic(letters(pair, topic), 1, 1))
    small_by_codec, near_the_limit = BAD + bytes(2_000_000), (BAD + bytes(range(256)) * 5000)[: LIMIT - 500]
    send(pair, topic, small_by_codec, codec="zstd")
    send(pair, topic, near_the_limit)
    small = [BAD + b"%d" % number for number in range(5)]
    for value in [*small, b"good"]:
        send(pair, topic, value, 1, codec="lz4")
    async with pair.engine() as engine:
        engine.transform = FailsOnBad()
        await engine.copy_all()
        raised = LIMIT + 2 * HEADERS_BYTES
        configure(pair.orange, topic, **{"max.message.bytes": str(raised)})
        configure(pair.grape, pair.copy_of(topic), **{"max.message.bytes": str(raised)})
        larger = (BAD + bytes(range(256)) * 5000)[: raised - 500]
        send(pair, topic, larger)
        await engine.copy_all()
        held = engine.position(topic)
    assert (held.dead_letters, held.stopped) == (3, "")
    assert values(pair, letters(pair, topic), 2) == [[small_by_codec, near_the_limit, larger], small]
    assert values(pair, pair.copy_of(topic), 2) == [[], [b"good"]]
    assert configuration(pair.grape, letters(pair, topic))["max.message.bytes"] == str(raised + HEADERS_BYTES)


async def until_refused(engine: Engine, topic: str) -> str:
    """Copy until a partition's stop is committed and all others are copied; the reason."""
    engine.transform = FailsOnBad()
    await engine.prepare()
    return str(await engine.until_stopped(topic))


async def test_case_702_a_dead_letter_that_is_refused_stops_its_partition_alone_until_there_is_room(pair: Pair) -> None:
    # A record near the limit became a dead letter that its topic refused: the lane restarted for ever.
    topic = pair.topic("small", PARTITIONS)
    pair.make_copy(topic, PARTITIONS, **{"max.message.bytes": "20000"})
    send_to_each(pair, topic, b"first")
    send(pair, topic, BAD + bytes(100_000))
    send_to_each(pair, topic, BAD + b"second")
    async with pair.engine() as engine:
        reason = await until_refused(engine, topic)
        where = f"produce to {letters(pair, topic)}-0"
        assert reason.startswith(f"{topic}-0 offset 1 is refused: {where}")
        assert f": MESSAGE_TOO_LARGE; raise max.message.bytes of {letters(pair, topic)}; what follows" in reason
        assert values(pair, pair.copy_of(topic), PARTITIONS) == [[b"first"]] * PARTITIONS
        found = values(pair, letters(pair, topic), PARTITIONS)
        assert found == [[], *[[BAD + b"second"]] * (PARTITIONS - 1)]
        configure(pair.grape, letters(pair, topic), **{"max.message.bytes": "200000"})
        await engine.copy_all()
        assert (await engine.positions())[topic, 0].stopped == ""
    assert values(pair, letters(pair, topic)) == [[BAD + bytes(100_000), BAD + b"second"]]


async def test_a_dead_letter_that_its_topic_refuses_for_another_reason_stops_its_partition_alone(pair: Pair) -> None:
    topic = pair.topic("compacted", PARTITIONS)
    make_topic(pair.grape, NewTopic(letters(pair, topic), PARTITIONS, 1, config={"cleanup.policy": "compact"}))
    send_to_each(pair, topic, b"first")
    send(pair, topic, BAD, key=None)
    send_to_each(pair, topic, BAD + b"second")
    async with pair.engine() as engine:
        reason = await until_refused(engine, topic)
        assert f"{topic}-0 offset 1 is refused" in reason
        assert "INVALID_RECORD; if they have no keys, take compact out of cleanup.policy of" in reason
    configure(pair.grape, letters(pair, topic), **{"cleanup.policy": "delete"})
    async with pair.engine() as engine:
        engine.transform = FailsOnBad()
        await engine.copy_all()
    assert values(pair, letters(pair, topic)) == [[BAD, BAD + b"second"]]


async def test_case_703_dead_letters_whose_topic_cannot_be_made_hold_back_their_partition_alone(pair: Pair) -> None:
    # The whole lane waited for it.
    room = 245 - len(pair.copy_of(f"-{pair.tag}"))
    topic, other = pair.topic("n" * room), pair.topic("other", PARTITIONS)
    send(pair, topic, BAD)
    send_to_each(pair, other, b"first")
    async with pair.engine() as engine:
        engine.transform = FailsOnBad()
        await engine.prepare()

        async def told_and_others_copied() -> None:
            await engine.until_told(f"{topic}-0", "INVALID_TOPIC_EXCEPTION")
            send_to_each(pair, other, b"second")
            await engine.caught_up(besides=Partition(topic, 0))

        await engine.copy_until(told_and_others_copied())
    assert values(pair, pair.copy_of(other), PARTITIONS) == [[b"first", b"second"]] * PARTITIONS
