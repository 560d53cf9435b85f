"""Failbacks by their command, and what a topic and its copy have to hold before and after them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from confluent_kafka import Producer, TopicPartition

from appliance.commands.failback.failback import failback
from appliance.commands.failback.model.failback_report import FailbackReport
from appliance.commands.run.operation import Choice
from testbed.cluster import Cluster
from tests.support.administration import administrator
from tests.support.engine import Engine, Pair
from tests.support.operating import YES, command, failed_over, run_command
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import Row, read_rows


async def failed_back(pair: Pair, choice: Choice = YES, **variables: str) -> FailbackReport:
    async with asyncio.timeout(PATIENCE), command(pair, choice, **variables) as running:
        return await run_command(running, failback)


def kept(pair: Pair, topic: str, partition: int = 0) -> list[Row]:
    """The rows that a failback has kept of what never came over."""
    return read_rows(pair.orange, pair.naming.diverged(topic), partition)


@dataclass
class Logs:
    """A topic of one partition and its copy, with what either has to hold."""

    pair: Pair
    topic: str
    here: list[Row] = field(default_factory=list)
    there: list[Row] = field(default_factory=list)

    @property
    def copy(self) -> str:
        return self.pair.naming.destination(self.topic)

    def at_source(self) -> list[Row]:
        return read_rows(self.pair.orange, self.topic, 0)

    def at_copy(self) -> list[Row]:
        return read_rows(self.pair.grape, self.copy, 0)

    def check(self, source: Sequence[Row], copy: Sequence[Row]) -> None:
        assert self.at_source() == list(source)
        assert self.at_copy() == list(copy)


def write_here(pair: Pair, topic: str, count: int) -> None:
    produce(pair.producer(), topic, count)


def write_there(pair: Pair, topic: str, count: int, **configuration: str) -> None:
    produce(
        Producer({**pair.grape.client_configuration(), "linger.ms": 5, **configuration}),
        pair.naming.destination(topic),
        count,
    )


def transact_there(pair: Pair, topic: str, count: int, *, commit: bool) -> None:
    """One transaction of an application in the copy."""
    name = f"application-{pair.tag}-{topic}-{commit}"
    producer = Producer({**pair.grape.client_configuration(), "transactional.id": name})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    produce(producer, pair.naming.destination(topic), count)
    if commit:
        producer.commit_transaction(PATIENCE)
    else:
        producer.abort_transaction(PATIENCE)


def delete_records(cluster: Cluster, topic: str, before: int) -> None:
    """Delete the first records of partition 0, as retention does."""
    admin = administrator(cluster)
    for deleted in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        deleted.result(PATIENCE)


async def copied(engine: Engine) -> None:
    """What the sources hold is copied, by lanes that begin anew."""
    engine.runners.clear()
    await engine.copy_all()


@contextlib.asynccontextmanager
async def failed_over_copy(
    pair: Pair, name: str, *, diverged: int = 0, there: int = 10, **configs: str
) -> AsyncIterator[tuple[Engine, Logs]]:
    """An engine, and both logs of a topic that was failed over after five records; then its copy took some.

    ``diverged`` are records of the source that never came over.
    """
    logs = Logs(pair, pair.topic(name, **configs))
    async with pair.engine() as engine:
        write_here(pair, logs.topic, 5)
        await engine.copy_all()
        if diverged:
            write_here(pair, logs.topic, diverged)
        await failed_over(pair)
        if there:
            write_there(pair, logs.topic, there)
        yield engine, logs
