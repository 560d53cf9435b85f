"""The latency of a record, from the call that produces it at the source until a consumer at the destination receives
it.

It includes the producer, the source's replication, the replicator's fetch and transaction, and a read_committed
consumer's wait for the commit. It is measured on a quiet link, with nothing else to copy, long after the kill.
"""

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

from appliance.errors import Unreachable
from demo.input import PROBE, PROBE_RECORDS, InputRecord
from demo.producer import InputProducer
from testbed.reading import committed_consumer, has_record
from testbed.tasks import Reached

_INTERVAL = 0.0125
_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds within which half of the records arrived, and 99 of 100."""

    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Latency":
        """The latency of the measured times, at least one."""
        ordered = sorted(seconds)
        return cls(_nearest_rank(ordered, 0.50) * 1000, _nearest_rank(ordered, 0.99) * 1000)


def measure(
    source: Mapping[str, str], destination: Mapping[str, str], reached: Reached, stopping: threading.Event
) -> Latency:
    """Produce the probe's records, 80 a second, and wait for their copies; blocks.

    The first one only warms up the path, and does not count. The others follow when it has arrived.

    Args:
        source: configuration that reaches the source cluster.
        destination: configuration that reaches the destination cluster.
        reached: for progress.
        stopping: ends it early.

    Raises:
        Unreachable: no record came for half a minute, a client failed, or ``stopping`` was set.
    """
    sent: list[float] = []
    taken: list[float] = []
    consumer = committed_consumer(destination)
    try:
        with InputProducer(source, PROBE.codec, PROBE.batching) as producer:
            consumer.assign([TopicPartition(PROBE.copy, 0, OFFSET_BEGINNING)])
            due = time.perf_counter()
            while len(taken) < PROBE_RECORDS and not stopping.is_set():
                may_send = len(sent) < PROBE_RECORDS and bool(taken or not sent)
                if may_send and time.perf_counter() >= due:
                    sent.append(time.perf_counter())
                    producer.send(PROBE, InputRecord(0, None, b"probe %d" % len(sent), [], 0))
                    due = sent[-1] + _INTERVAL
                message = consumer.poll(max(0.0, due - time.perf_counter()) if may_send else _INTERVAL)
                if message is not None and has_record(message):
                    taken.append(time.perf_counter() - sent[len(taken)])
                    reached(len(taken))
                elif sent and time.perf_counter() > sent[-1] + _PATIENCE:
                    raise Unreachable(f"{len(sent) - len(taken)} records of the latency probe did not come back")
            producer.flush(stopping)
    except KafkaException as error:
        raise Unreachable(f"the latency could not be measured: {error.args[0]}") from error
    finally:
        consumer.close()
    if len(taken) < PROBE_RECORDS:
        raise Unreachable("the latency probe was ended early")
    return Latency.of(taken[1:])


def _nearest_rank(ordered: Sequence[float], share: float) -> float:
    return ordered[math.ceil(share * len(ordered)) - 1]
