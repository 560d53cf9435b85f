"""The settings of copies on real brokers: what the link has set is unset with it, and no setting overtakes records."""

import pytest

from tests.support.administration import configuration, configure
from tests.support.engine import Engine, Pair
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

COMPACT = {"cleanup.policy": "compact"}
LOOKS = 10
"""Each topic is looked at once in five looks; a look may meet a broker that does not show the last change yet."""


async def looks(engine: Engine) -> dict[str, tuple[str, ...]]:
    """The settings left out after many looks of a replicator that has just started."""
    discovery = engine.discovery()
    for _ in range(LOOKS):
        found = await discovery.search()
    return dict(found.left_out)


def produce(pair: Pair, topic: str, count: int, key: bytes | None = None) -> None:
    producer = pair.producer()
    for number in range(count):
        producer.produce(topic, str(number), key=key)
    assert producer.flush(PATIENCE) == 0


async def test_case_660_a_setting_that_is_unset_while_no_replicator_runs_is_unset_on_the_copy(pair: Pair) -> None:
    # It stayed for ever: only the running replicator knew what it had set, and the copy deleted what its source kept.
    topic = pair.topic("unset", **{"retention.ms": "3600000", "segment.ms": "7200000"})
    copy = pair.copy_of(topic)
    async with pair.engine() as engine:
        await looks(engine)
        configure(pair.grape, copy, **{"segment.bytes": "1048576"})
        configure(pair.orange, topic, **{"retention.ms": None})
        await looks(engine)
    held = configuration(pair.grape, copy)
    assert "retention.ms" not in held
    assert (held["segment.ms"], held["segment.bytes"]) == ("7200000", "1048576")


async def test_case_661_a_topic_that_becomes_compacted_does_not_overtake_what_its_copy_lacks(pair: Pair) -> None:
    # The copy was compacted at once, and refused the records without keys from before; `delete` set there was undone.
    topic = pair.topic("becomes-compacted", **{"retention.ms": "604800000"})
    copy = pair.copy_of(topic)
    produce(pair, topic, 10)
    async with pair.engine() as engine:
        await engine.prepare()
        configure(pair.orange, topic, **COMPACT)
        produce(pair, topic, 10, b"key")
        assert await looks(engine) == {topic: ("cleanup.policy",)}
        held = configuration(pair.grape, copy)
        assert (held["cleanup.policy"], held["retention.ms"]) == ("delete", "-1")
        await engine.copy_all()
        assert await looks(engine) == {}
    assert len(pair.compare(topic)[0]) == 20
    held = configuration(pair.grape, copy)
    assert (held["cleanup.policy"], held["retention.ms"]) == ("compact", "604800000")
    assert "retention.bytes" not in held


async def test_case_662_a_copy_that_is_made_of_a_compacted_topic_takes_its_records_without_keys(pair: Pair) -> None:
    # It was made compacted, and refused for ever the records from before that its source had not yet compacted away.
    topic = pair.topic("was-compacted")
    copy = pair.copy_of(topic)
    produce(pair, topic, 10)
    configure(pair.orange, topic, **COMPACT)
    async with pair.engine() as engine:
        await engine.copy_all()
        assert len(pair.compare(topic)[0]) == 10
        assert await looks(engine) == {}
    held = configuration(pair.grape, copy)
    assert held["cleanup.policy"] == "compact"
    assert "retention.ms" not in held


async def test_a_copy_of_an_empty_compacted_topic_is_compacted_in_the_look_that_makes_it(pair: Pair) -> None:
    topic = pair.topic("empty", 2, **COMPACT)
    async with pair.engine() as engine:
        await engine.discovery().search()
        assert await looks(engine) == {}
    assert configuration(pair.grape, pair.copy_of(topic))["cleanup.policy"] == "compact"


async def test_case_663_the_operators_delete_on_a_copy_that_refused_records_is_not_undone_before_they_are_there(
    pair: Pair,
) -> None:
    # It was undone within five looks: the partition stopped again.
    topic = pair.topic("refused")
    copy = pair.copy_of(topic)
    pair.make_copy(topic, 1, **COMPACT)
    produce(pair, topic, 10)
    configure(pair.orange, topic, **COMPACT)
    async with pair.engine() as engine:
        await engine.until_stopped(topic)
        configure(pair.grape, copy, **{"cleanup.policy": "delete", "retention.ms": "86400000"})
        assert await looks(engine) == {topic: ("cleanup.policy",)}
        held = configuration(pair.grape, copy)
    assert (held["cleanup.policy"], held["retention.ms"]) == ("delete", "86400000")


async def test_a_smaller_limit_of_batches_waits_for_the_larger_ones(pair: Pair) -> None:
    topic = pair.topic("large", **{"max.message.bytes": "3000000"})
    copy = pair.copy_of(topic)
    producer = pair.producer(**{"message.max.bytes": 2_500_000})
    producer.produce(topic, b"x" * 2_000_000)
    assert producer.flush(PATIENCE) == 0
    async with pair.engine() as engine:
        await engine.prepare()
        configure(pair.orange, topic, **{"max.message.bytes": None})
        assert await looks(engine) == {topic: ("max.message.bytes",)}
        assert configuration(pair.grape, copy)["max.message.bytes"] == "3000000"
        await engine.copy_all()
        assert await looks(engine) == {}
    assert "max.message.bytes" not in configuration(pair.grape, copy)
