"""``python -m tests.networks.programs.confluent PROPERTIES topics | produce TOPIC | consume TOPIC COUNT``.

Records are lines of the standard input or output, ``key:value``.
"""

import sys
import uuid
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

_SECONDS = 20.0


def topics(configuration: dict[str, str]) -> None:
    for topic in AdminClient(configuration).list_topics(timeout=_SECONDS).topics:
        print(topic)


def produce(configuration: dict[str, str], topic: str) -> None:
    producer = Producer(configuration)
    for line in sys.stdin.read().splitlines():
        key, _, value = line.partition(":")
        producer.produce(topic, value, key)
    if producer.flush(_SECONDS):
        sys.exit("not all records were taken")


def consume(configuration: dict[str, str], topic: str, count: str) -> None:
    consumer = Consumer({**configuration, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    for message in consumer.consume(int(count), _SECONDS):
        if message.error():
            raise KafkaException(message.error())
        print(f"{message.key().decode()}:{message.value().decode()}")
    consumer.close()


if __name__ == "__main__":
    entries = [line.partition("=") for line in Path(sys.argv[1]).read_text().splitlines()]
    action = {"topics": topics, "produce": produce, "consume": consume}[sys.argv[2]]
    action({name: value for name, _, value in entries}, *sys.argv[3:])
