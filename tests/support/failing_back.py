"""Failbacks by their command, and what a topic and its copy have to hold before and after them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from confluent_kafka import Producer, TopicPartition

from appliance.commands.failback.failback import failback
from appliance.commands.failback.model.failback_report import FailbackReport
from appliance.commands.promotion import failover
from appliance.commands.run.operation import Choice, Operation, operation
from appliance.link.model.copy_states import CopyState, effective
from testbed.cluster import Cluster
from tests.support.administration import administrator
from tests.support.engine import Engine, Pair
from tests.support.operating import run_command
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import Row, read_rows

YES = Choice(yes=True)


class Killed(Exception):
    """Stands for a kill -9."""


@contextlib.asynccontextmanager
async def command(pair: Pair, choice: Choice = YES) -> AsyncIterator[Operation]:
    async with operation(pair.settings(), choice, lambda _: None) as running:
        yield running


async def failed_back(pair: Pair, choice: Choice = YES) -> FailbackReport:
    async with asyncio.timeout(PATIENCE), command(pair, choice) as running:
        return await run_command(running, failback)


async def promoted(pair: Pair, choice: Choice = YES) -> None:
    async with command(pair, choice) as running:
        await run_command(running, failover)


async def states(pair: Pair, topic: str) -> set[CopyState]:
    async with command(pair) as running:
        await running.lanes.read()
        return {effective(checkpoint.states, topic) for checkpoint in running.lanes.checkpoints}


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
