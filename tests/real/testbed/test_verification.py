"""The demo's own consumers read and compare both sides: each change to a copy is found and named."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from demo.report import DemoReport
from demo.verification import CopyCheck, verify
from testbed.comparison import Difference, Differences, Kind
from tests.support.administration import make_topic
from tests.support.engine import Pair
from tests.support.patience import PATIENCE

RECORDS = [b"%d" % number for number in range(10)]
WHEN = int(time.time() * 1000)

pytestmark = pytest.mark.asyncio(loop_scope="session")


def produce(client: Mapping[str, str], topic: str, values: Sequence[bytes], partition: int = 0) -> None:
    failures: list[object] = []
    reports = {"delivery.report.only.error": True, "on_delivery": lambda error, _message: failures.append(error)}
    producer = Producer({**client, **reports})
    for value in values:
        producer.produce(topic, value, b"key", partition, timestamp=WHEN)
    assert producer.flush(PATIENCE) == 0
    assert failures == []


def produce_and_abort(client: Mapping[str, str], topic: str, values: Sequence[bytes]) -> None:
    producer = Producer({**client, "transactional.id": f"{topic}-aborted"})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(PATIENCE)
    producer.abort_transaction(PATIENCE)


class Sides:
    """A topic of two partitions, and the topic that is compared as its copy."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.source, self.destination = pair.orange.client_configuration(), pair.grape.client_configuration()
        self.topic = f"verified-{pair.tag}"
        self.copy = f"{self.topic}.copy"

    def make(self) -> None:
        make_topic(self.pair.orange, NewTopic(self.topic, 2))
        produce(self.source, self.topic, RECORDS)
        make_topic(self.pair.grape, NewTopic(self.copy, 2))

    def copied(self, values: Sequence[bytes], partition: int = 0) -> None:
        produce(self.destination, self.copy, values, partition)

    async def check(self) -> CopyCheck:
        return await verify(self.source, self.destination, {self.topic: self.copy}, [], lambda _count: None)


@pytest.fixture
def sides(pair: Pair) -> Sides:
    return Sides(pair)


async def test_a_true_copy_does_not_differ(sides):
    await asyncio.to_thread(sides.make)
    await asyncio.to_thread(sides.copied, RECORDS)
    check = await sides.check()
    assert (check.records, check.bytes, check.differences) == (10, 40, Differences())


async def test_aborted_records_are_on_neither_side(sides):
    await asyncio.to_thread(sides.make)
    await asyncio.to_thread(produce_and_abort, sides.source, sides.topic, [b"never", b"seen"])
    await asyncio.to_thread(sides.copied, RECORDS)
    await asyncio.to_thread(produce_and_abort, sides.destination, sides.copy, RECORDS)
    check = await sides.check()
    assert (check.records, check.differences) == (10, Differences())


@pytest.mark.parametrize(
    ("spoil", "kind", "source_offset", "destination_offset"),
    [
        (lambda sides: sides.copied([*RECORDS, b"one more"]), Kind.DUPLICATED, None, 10),
        (lambda sides: sides.copied(RECORDS + RECORDS[4:5]), Kind.DUPLICATED, 4, 10),
        (lambda sides: sides.copied(RECORDS[:4] + RECORDS[5:]), Kind.LOST, 4, None),
        (lambda sides: sides.copied([*RECORDS[:4], b"?", *RECORDS[5:]]), Kind.ALTERED, 4, 4),
        (lambda sides: sides.copied(RECORDS[1:] + RECORDS[:1]), Kind.REORDERED, 0, 9),
    ],
    ids=["one more", "twice", "lost", "altered", "reordered"],
)
async def test_one_record_of_a_copy_that_is_not_as_it_should_be_is_named(
    sides, spoil: Callable[[Sides], None], kind, source_offset, destination_offset
):
    await asyncio.to_thread(sides.make)
    await asyncio.to_thread(spoil, sides)
    found = (await sides.check()).differences
    assert found == Differences(
        **{kind.value: 1}, examples=(Difference(kind, sides.topic, 0, source_offset, destination_offset),)
    )
    assert not DemoReport(10, 40, 1, 0, 0, 0, 0, found).clean


async def test_a_record_in_another_partition_is_lost_there_and_too_many_here(sides):
    await asyncio.to_thread(sides.make)
    await asyncio.to_thread(sides.copied, RECORDS[:-1])
    await asyncio.to_thread(sides.copied, RECORDS[-1:], 1)
    found = (await sides.check()).differences
    assert (found.lost, found.duplicated, found.reordered, found.altered) == (1, 1, 0, 0)


async def test_a_topic_without_a_copy_is_lost_as_a_whole(sides):
    await asyncio.to_thread(make_topic, sides.pair.orange, NewTopic(sides.topic, 1))
    await asyncio.to_thread(produce, sides.source, sides.topic, RECORDS)
    assert (await sides.check()).differences.lost == 10


async def test_a_topic_that_nobody_asked_for_is_named(sides):
    await asyncio.to_thread(sides.make)
    stray = f"{sides.topic}.stray"
    await asyncio.to_thread(make_topic, sides.pair.grape, NewTopic(stray, 1))
    assert stray in (await sides.check()).unasked
