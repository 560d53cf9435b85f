"""Messages of magic 0 and 1, which the last brokers that write them keep for topics of an old format."""

import asyncio
import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from tests.brokers.versions import NEWEST, OLD, Versions
from tests.brokers.way import Way
from tests.support.administration import make_topic
from tests.support.engine import delete_topic
from tests.support.patience import PATIENCE
from tests.support.rows import read_rows, until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

CODECS = ("none", "gzip", "snappy", "lz4")
"""By partition."""

RECORDS = 200


async def test_case_835_old_messages_in_every_codec_are_copied_and_verified_as_librdkafka_reads_them(
    versions: Versions, tmp_path: Path
) -> None:
    # Before, lz4 of magic 0 stopped its partition for ever (KAFKA-3160), and `verify` read neither magic.
    way = Way(await versions.cluster(OLD[0]), await versions.cluster(NEWEST), tmp_path)
    topics = {f"orders.format-{version.replace('.', '-')}": version for version in ("0.9.0", "0.10.0")}
    for topic, version in topics.items():
        new = NewTopic(topic, len(CODECS), 1, config={"message.format.version": version})
        await asyncio.to_thread(make_topic, way.source, new)
        for partition, codec in enumerate(CODECS):
            producer = Producer({**way.source.client_configuration(), "compression.type": codec, "linger.ms": 20})
            for number in range(RECORDS):
                producer.produce(topic, b"value %d" % number * 9, None if number % 3 else b"key", partition)
            assert producer.flush(PATIENCE) == 0
    try:
        async with way.running("replicate"):
            for topic in topics:
                for partition in range(len(CODECS)):
                    copies = await until_rows(way.destination, f"{topic}.{way.suffix}", RECORDS, partition)
                    originals = await asyncio.to_thread(read_rows, way.source, topic, partition)
                    assert [row[:3] for row in copies] == [row[:3] for row in originals]
        options = [option for topic in topics for option in ("--topic", topic)]
        async with way.running("verify", "--json", "--wait", "1", *options) as verify:
            code = await verify.wait(PATIENCE)
        said = json.loads(verify.log_file.read_text())
        assert (code, said["records"]) == (0, len(topics) * len(CODECS) * RECORDS), said
    finally:
        for topic in topics:
            await asyncio.to_thread(delete_topic, way.source, topic)
