"""The producers and consumers of the loads, all of confluent-kafka: their common settings, waits and failures."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from appliance.errors import ProcessFailed
from testbed.cluster import Cluster
from testbed.tasks import in_thread

ERRORS_ONLY: Mapping[str, int] = {"log_level": 3}

_POLL_SECONDS = 0.01
_AT_ONCE = 10_000
_WAIT_SECONDS = 0.1
_NO_TUNING: Mapping[str, str | int] = {}


@contextlib.contextmanager
def kafka_errors_as(text: str) -> Iterator[None]:
    """Raise an error of the clients as ``ProcessFailed``, after this text."""
    try:
        yield
    except KafkaException as error:
        raise ProcessFailed(f"{text}: {error}") from error


class Refused:
    """The records that the broker has not taken; an instance is a producer's ``on_delivery``."""

    def __init__(self) -> None:
        self._errors: list[KafkaError] = []

    def __call__(self, error: KafkaError | None, _message: Message) -> None:
        self._errors += [error] if error else []

    def check(self) -> None:
        """Raise the first record's error, if there is one."""
        if self._errors:
            raise KafkaException(self._errors[0])

    def flush(self, producer: Producer, timeout: float) -> None:
        """Wait until the broker has taken all records."""
        if producer.flush(timeout):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        self.check()


async def drain(producer: Producer, down_to: int = 0) -> None:
    """Wait until at most ``down_to`` records wait to be written."""
    while len(producer) > down_to:
        producer.poll(_POLL_SECONDS)
        await asyncio.sleep(0)


def beginnings(topic: str, partitions: int) -> list[TopicPartition]:
    """The first offsets of the topic's partitions."""
    return [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)]


def reader(
    client: Mapping[str, str], partitions: list[TopicPartition], tuning: Mapping[str, str | int] = _NO_TUNING
) -> Consumer:
    """A consumer of the committed records from these offsets on."""
    committed = {"group.id": "bench", "isolation.level": "read_committed", "enable.auto.commit": "false"}
    consumer = Consumer({**client, **ERRORS_ONLY, **committed, **tuning})
    consumer.assign(partitions)
    return consumer


async def committed_records(
    cluster: Cluster, topic: str, partitions: int, *, endless: bool = False
) -> AsyncGenerator[list[Message], None]:
    """The committed records of the topic, from its first offset to its current end, or without an end.

    Transaction markers and aborted records are not among them, because a ``read_committed`` consumer gets none.
    """
    ended: set[int | None] = set()
    with (
        kafka_errors_as(f"topic {topic} could not be read"),
        contextlib.closing(
            reader(cluster.client_configuration(), beginnings(topic, partitions), {"enable.partition.eof": "true"})
        ) as consumer,
    ):
        while endless or len(ended) < partitions:
            messages = await in_thread(lambda _: consumer.consume(_AT_ONCE, _WAIT_SECONDS))
            ended |= {message.partition() for message in messages if _is_ending(message)}
            yield [message for message in messages if message.error() is None]


def _is_ending(message: Message) -> bool:
    """True if the message is the end of a partition, and not a record."""
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return error is not None
