"""The contents and changes of a source's log, on real brokers."""

import asyncio
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from appliance.engine.write import ownership
from appliance.kafka.records.batch import SEQUENCES
from appliance.link.client.writer import Writer
from testbed.cluster import Cluster
from tests.support.administration import COMPACTED, configure
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import SOON, end

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_compacted_log_with_holes_and_emptied_batches_is_copied(pair: Pair) -> None:
    # A batch with a tombstone that will be deleted has a delete horizon in place of its first timestamp (KIP-534).
    topic = pair.topic("compacted", **COMPACTED)
    kept, transactional = pair.producer(), pair.producer(**{"transactional.id": topic})
    transactional.init_transactions(PATIENCE)
    transactional.begin_transaction()
    for number in range(200):
        transactional.produce(topic, b"old %d" % number, b"%d" % (number % 150))
    transactional.commit_transaction(PATIENCE)
    for number in range(100):
        kept.produce(topic, None if number % 10 == 0 else b"new %d" % number, b"%d" % number)
    kept.flush(PATIENCE)
    async with asyncio.timeout(PATIENCE):
        while await asyncio.to_thread(visible, pair.orange, topic) > 160:
            await asyncio.sleep(0.5)
            kept.produce(topic, b"comes", b"late")  # rolls the segment: earlier ones are cleaned
            kept.flush(PATIENCE)
    configure(pair.orange, topic, **{"cleanup.policy": "delete", "segment.ms": None})
    await pair.copy_all()
    assert len(pair.compare(topic)[0]) < end(pair.orange, topic, 0) - 100


async def test_sequence_numbers_go_on_at_0_after_the_last_one(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = pair.topic("wrap")
    produce(pair.producer(**{"batch.num.messages": 50}), topic, 500)
    async with pair.engine() as engine:
        await engine.prepare()
        monkeypatch.setattr(ownership, "Writer", LongWriting)
        await engine.copy_all()
        writer = engine.runners[0].lane.writer
        assert writer.sequences[pair.copy_of(topic), 0] < 500
        pair.write(topic, 100)
        await engine.copy_all()
    assert len(pair.compare(topic)[0]) == 600


class LongWriting(Writer):
    """A writer with high sequence numbers."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sequences = NearTheEnd()


class NearTheEnd(dict[tuple[str, int], int]):
    """The sequence numbers of a producer that has written two billion records to every copy.

    The partition of the positions is excluded: it may know an older epoch of the lane, and then a new epoch must begin
    at 0.
    """

    def get(self, partition: tuple[str, int], _: object = None) -> int:
        return super().get(partition, 0 if partition[0].endswith((".positions", ".offsets")) else SEQUENCES - 120)


async def test_a_batch_that_is_damaged_on_the_sources_disk_is_never_forwarded(pair: Pair) -> None:
    topic = pair.topic("damaged")
    for _ in range(3):
        pair.write(topic, 20)
    log = pair.orange.directory / "b0" / "data" / f"{topic}-0" / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    data[-10] ^= 1
    log.write_bytes(data)
    fault = await pair.stopped(topic)
    assert "CRC" in fault
    assert f"{topic}-0 from offset" in fault
    assert pair.copy_counts(topic)[0] in (0, 20, 40)


async def test_a_topic_that_is_made_anew_between_two_fetches_is_not_read_on(pair: Pair) -> None:  # invariant G
    topic = pair.filled("anew-soon", 10)
    async with pair.engine() as engine:
        await engine.copy_all()
        pair.delete(topic)
        pair.topic("anew-soon")
        pair.write(topic, 50)
        await engine.copy_until(engine.until_told(f"{topic}-0 at its leader"))
        await engine.assign()
        assert "deleted and made anew" in str(await engine.until_stopped(topic))
    assert pair.copy_counts(topic) == [10]


def visible(cluster: Cluster, topic: str) -> int:
    """The number of records that a consumer sees."""
    reading = {"group.id": "v", "enable.partition.eof": True, "fetch.wait.max.ms": SOON}
    consumer = Consumer({**cluster.client_configuration(), **reading})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        count = 0
        while (message := consumer.poll(PATIENCE)) is not None:
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                break
            count += error is None
        return count
    finally:
        consumer.close()
