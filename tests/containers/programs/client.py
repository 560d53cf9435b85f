"""``python -m tests.containers.programs.client CONFIGURATION ACTION [ARGUMENT...]``, with confluent-kafka.

``produce TOPIC WHO COUNT SECONDS`` writes records, all different, within that time. ``read TOPIC`` prints a topic's
records as a line of JSON, a list, for each partition. ``topics`` prints the names of all topics. ``bombs TOPIC TYPE``
makes a topic with timestamps of that type, and writes five batches of a few KB, each with a record of 200 MB of zeros.
"""

import base64
import json
import random
import sys
import time
import uuid
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

_SECONDS = 30.0
_TOMBSTONES = 0.05


def produce(configuration: dict[str, str], topic: str, who: str, count: str, seconds: str) -> None:
    producer = Producer({**configuration, "compression.type": "lz4"})
    chance = random.Random(who)
    begun = time.monotonic()
    for number in range(int(count)):
        value = None if chance.random() < _TOMBSTONES else chance.randbytes(chance.randrange(200))
        headers = [("who", who.encode()), ("number", b"%d" % number)]
        producer.produce(topic, value, b"key %d" % chance.randrange(100), headers=headers)
        producer.poll(max(0.0, begun + float(seconds) * number / int(count) - time.monotonic()))
    if producer.flush(_SECONDS):
        sys.exit("not all records were taken")


def read(configuration: dict[str, str], topic: str) -> None:
    consumer = Consumer({**configuration, "group.id": uuid.uuid4().hex, "enable.partition.eof": True})
    listed = consumer.list_topics(topic, timeout=_SECONDS).topics[topic]
    found: dict[int, list[object]] = {partition: [] for partition in listed.partitions}
    consumer.assign([TopicPartition(topic, partition, 0) for partition in found])
    ended: set[int] = set()
    while ended != set(found):
        message = consumer.poll(_SECONDS)
        if message is None:
            sys.exit(f"nothing more came from {topic}")
        if message.error() is None:
            texts = (message.key(), message.value(), *(part for header in message.headers() or [] for part in header))
            found[message.partition()].append([message.timestamp(), [_text(part) for part in texts]])
        elif message.error().code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
        else:
            raise KafkaException(message.error())
    consumer.close()
    for partition in sorted(found):
        print(json.dumps(found[partition]))


def bombs(configuration: dict[str, str], topic: str, timestamp_type: str) -> None:
    new = NewTopic(topic, 1, config={"message.timestamp.type": timestamp_type})
    admin = AdminClient(configuration)
    admin.create_topics([new])[topic].result(_SECONDS)
    producer = Producer({**configuration, "compression.type": "zstd", "message.max.bytes": 10**9})
    for _ in range(5):
        producer.produce(topic, bytes(200_000_000))
        if producer.flush(_SECONDS):
            sys.exit("not all records were taken")


def _text(part: bytes | str | None) -> str | None:
    return base64.b64encode(part).decode() if isinstance(part, bytes) else part


def topics(configuration: dict[str, str]) -> None:
    print(json.dumps(list(AdminClient(configuration).list_topics(timeout=_SECONDS).topics)))


if __name__ == "__main__":
    action = {"produce": produce, "read": read, "topics": topics, "bombs": bombs}[sys.argv[2]]
    action(json.loads(Path(sys.argv[1]).read_text()), *sys.argv[3:])
