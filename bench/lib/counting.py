"""The proof that a copy is complete: an independent client reads and counts its records."""

import asyncio
import contextlib

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from appliance.errors import ProcessFailed
from bench.lib.clusters import Pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from testbed.cluster import Cluster

_DEADLINE = 300.0
_AT_ONCE = 10_000
_WAIT_SECONDS = 0.1


async def count(cluster: Cluster, topic: str, partitions: int) -> int:
    """Count the committed records of the topic, from its first offset to its current end.

    Transaction markers and aborted records do not count, because a ``read_committed`` consumer gets none.

    Raises:
        ProcessFailed: the cluster refused a request, or the end was not reached in time.
    """
    client: dict[str, str] = {
        **cluster.client_configuration(),
        "group.id": "bench-count",
        "isolation.level": "read_committed",
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
    }
    try:
        with contextlib.closing(Consumer(client)) as consumer:
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
            async with asyncio.timeout(_DEADLINE):
                return await _count_to_the_ends(consumer, partitions)
    except KafkaException as error:
        raise ProcessFailed(f"topic {topic} could not be read: {error}") from error
    except TimeoutError as error:
        raise ProcessFailed(f"topic {topic} could not be read to its end within {_DEADLINE:g} s") from error


async def _count_to_the_ends(consumer: Consumer, partitions: int) -> int:
    records = 0
    ended: set[int | None] = set()
    while len(ended) < partitions:
        messages = consumer.consume(_AT_ONCE, _WAIT_SECONDS)
        endings = [message for message in messages if _is_ending(message)]
        ended |= {message.partition() for message in endings}
        records += len(messages) - len(endings)
        await asyncio.sleep(0)
    return records


def _is_ending(message: Message) -> bool:
    """True if the message is the end of a partition, and not a record.

    Raises:
        KafkaException: the message is an error.
    """
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return error is not None


async def require_complete(pair: Pair, copying: Copying, load: Load) -> None:
    """Require that the copy holds as many records as a consumer sees of the load.

    Raises:
        ProcessFailed: it holds more or fewer, or cannot be read.
    """
    copied = await count(pair.destination, copying.topic, load.partitions)
    if copied != load.visible:
        raise copying.process.failure(f"copied {copied} records of {load.visible}")
