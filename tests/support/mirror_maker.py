"""MirrorMaker 2 on the test's link, and copies and offsets as it leaves them."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.commands.adoption.adopt import adopt
from appliance.commands.adoption.finding import Choice
from appliance.commands.adoption.mirror_maker import MirrorMaker
from appliance.commands.adoption.model.plan import Allowed
from appliance.commands.adoption.model.report import AdoptionReport
from appliance.commands.run.operation import Choice as Terms
from appliance.commands.run.operation import operation
from appliance.errors import LinkRefused
from testbed.mirror_maker import exactly_once, flow, nothing_else, one_broker, start
from testbed.process import OwnedProcess
from tests.support.administration import make_topic
from tests.support.engine import LANES, Pair
from tests.support.operating import run_command
from tests.support.patience import PATIENCE

_QUICK = {
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    "offset.flush.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": "0",
}
BEGAN = int(time.time() * 1000) - 1_000_000
"""The time of the first record, in milliseconds: recent, so that no retention deletes it."""

_JAVA_OPTIONS = ("-Xmx384M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


@contextlib.asynccontextmanager
async def running(pair: Pair, directory: Path, *, once: bool = False, **more: str) -> AsyncIterator[OwnedProcess]:
    """MirrorMaker 2, killed at the end; ``more`` are entries of its properties, with ``__`` for a dot."""
    alias, target = pair.naming.source, "grape"
    entries = flow(pair.orange.home_bootstrap, pair.grape.home_bootstrap, alias, target, pair.naming.included.pattern)
    entries |= one_broker() | nothing_else() | {f"{target}.{key}": value for key, value in _QUICK.items()}
    entries |= {"refresh.topics.interval.seconds": "1", "tasks.max": "2"}
    entries |= {f"{alias}.consumer.max.poll.records": "50"}
    if once:
        entries |= exactly_once(target) | {f"{alias}.consumer.isolation.level": "read_committed"}
        entries |= {f"{target}.producer.transaction.timeout.ms": "10000"}
    entries |= {key.replace("__", "."): value for key, value in more.items()}
    process = await start(entries, directory, alias, _JAVA_OPTIONS)
    try:
        yield process
    finally:
        await process.kill()


def commit_as_it_does(pair: Pair, last: Mapping[tuple[str, int], int | None]) -> None:
    """Write its last copied offsets to its topic of offsets; None resets one."""
    topic = f"mm2-offsets.{pair.naming.source}.internal"
    if topic not in AdminClient(pair.grape.client_configuration()).list_topics(timeout=PATIENCE).topics:
        make_topic(pair.grape, NewTopic(topic, 5, 1, config={"cleanup.policy": "compact"}))
    producer = Producer(pair.grape.client_configuration())
    for (name, partition), offset in last.items():
        place = {"cluster": pair.naming.source, "partition": partition, "topic": name}
        value = None if offset is None else json.dumps({"offset": offset}).encode()
        producer.produce(topic, key=json.dumps(["MirrorSourceConnector", place]).encode(), value=value)
    assert producer.flush(PATIENCE) == 0


@dataclass(frozen=True, slots=True)
class Sent:
    """A record with a time of its own."""

    key: bytes | None
    value: bytes | None
    timestamp: int


def send(producer: Producer, topic: str, records: Iterable[Sent], partition: int = 0) -> None:
    for each in records:
        producer.produce(topic, key=each.key, value=each.value, timestamp=each.timestamp, partition=partition)
    assert producer.flush(PATIENCE) == 0


def numbered(first: int, end: int) -> Sequence[Sent]:
    """Records that are all different."""
    return [Sent(b"key %d" % (number % 5), b"value %d" % number, BEGAN + number) for number in range(first, end)]


def copies(pair: Pair) -> Producer:
    """A producer to the copies, without an id, like that of MirrorMaker 2."""
    return Producer({**pair.grape.client_configuration(), "linger.ms": 5})


async def adopted(
    pair: Pair,
    terms: Terms | None = None,
    allowed: Allowed | None = None,
    lines: list[str] | None = None,
    lanes: int = LANES,
    **choice: bool,
) -> AdoptionReport:
    """Run the command."""
    tell = lines.append if lines is not None else lambda _: None
    async with operation(pair.settings(LANES=str(lanes)), terms or Terms(yes=True, wait=PATIENCE), tell) as run:
        return await run_command(run, adopt, Choice(MirrorMaker(run.naming.source), allowed or Allowed(), **choice))


async def when_stopped(
    pair: Pair, terms: Terms | None = None, allowed: Allowed | None = None, **choice: bool
) -> tuple[AdoptionReport, list[str]]:
    """Run the command again and again until the killed MirrorMaker 2 has timed out; with the refusals before."""
    refusals: list[str] = []
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await adopted(pair, terms, allowed, **choice), refusals
            except LinkRefused as refused:
                refusals.append(str(refused))
            await asyncio.sleep(0.2)
