"""A copy record by record, as an engineer would write it with confluent-kafka: read, write, commit both at once.

``python -m bench.lib.record_program SOURCE DESTINATION TOPIC COPY CODEC`` copies until it is stopped. Each transaction
holds the records and the positions after them. The positions are the offsets of a consumer group at the destination,
named like the copy, and a new start continues exactly there. Key, value, headers, timestamp and partition are kept.
librdkafka fetches, compresses and sends in threads of its own. Its ``produce_batch``, which saves a call for each
record, supports neither timestamps nor headers.
"""

import sys
from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

_A_TRANSACTION = 10_000
_WAIT_SECONDS = 0.05
_CALL_SECONDS = 30.0
_GROUP = "record-by-record"


def main(arguments: Sequence[str]) -> None:
    """Copy until killed."""
    source, destination, topic, copy, codec = arguments
    reader, writer, keeper = _reader(source, copy), _writer(destination, copy, codec), _keeper(destination, copy)
    writer.init_transactions(_CALL_SECONDS)
    reader.assign([TopicPartition(topic, each.partition, each.offset) for each in _positions(keeper, copy)])
    while True:
        messages = reader.consume(_A_TRANSACTION, _WAIT_SECONDS)
        if messages:
            writer.begin_transaction()
            _produce(writer, copy, messages)
            positions = reader.position(reader.assignment())
            kept = [TopicPartition(copy, each.partition, each.offset) for each in positions if each.offset >= 0]
            writer.send_offsets_to_transaction(kept, keeper.consumer_group_metadata(), _CALL_SECONDS)
            writer.commit_transaction(_CALL_SECONDS)


def _positions(keeper: Consumer, copy: str) -> list[TopicPartition]:
    """The next offset of each partition."""
    partitions = keeper.list_topics(copy, _CALL_SECONDS).topics[copy].partitions
    kept = keeper.committed([TopicPartition(copy, number) for number in partitions], _CALL_SECONDS)
    return [
        TopicPartition(copy, each.partition, each.offset if each.offset >= 0 else OFFSET_BEGINNING) for each in kept
    ]


def _keeper(bootstrap: str, copy: str) -> Consumer:
    """A consumer that reads no records; its group's offsets are the positions."""
    return Consumer({"bootstrap.servers": bootstrap, "group.id": f"{_GROUP}.{copy}"})


def _reader(bootstrap: str, copy: str) -> Consumer:
    tuned: dict[str, str | int | bool] = {
        "bootstrap.servers": bootstrap,
        "group.id": f"{_GROUP}.{copy}",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "max.partition.fetch.bytes": 8 << 20,
        "queued.min.messages": 200_000,
        "queued.max.messages.kbytes": 256 << 10,
        "fetch.queue.backoff.ms": 1,
    }
    return Consumer(tuned)


def _writer(bootstrap: str, copy: str, codec: str) -> Producer:
    tuned: dict[str, str | int | bool] = {
        "bootstrap.servers": bootstrap,
        "transactional.id": f"{_GROUP}.{copy}",
        "compression.type": codec,
        "batch.size": 128 * 1024,
        "linger.ms": 5,
        "queue.buffering.max.messages": 2 * _A_TRANSACTION,
        "delivery.report.only.error": True,
    }
    return Producer(tuned)


def _produce(producer: Producer, copy: str, messages: Sequence[Message]) -> None:
    produce = producer.produce
    for message in messages:
        if (error := message.error()) is not None:
            raise KafkaException(error)
        _, timestamp = message.timestamp()
        key, value, partition, headers = message.key(), message.value(), message.partition() or 0, message.headers()
        if headers:
            produce(copy, value, key, partition, timestamp=timestamp, headers=headers)
        else:
            produce(copy, value, key, partition, timestamp=timestamp)


if __name__ == "__main__":
    main(sys.argv[1:])
