"""A fault that takes from the destination what it had acknowledged: an unclean leader election there (invariant J).

It strikes a copy of its own, which alone may lose something: in the run's other copies a loss is a violation.
"""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from tests.faults.both_sides import compared
from tests.faults.network import make_topics
from tests.faults.run import Run
from tests.support.administration import configure, make_topic, wait_for_leader
from tests.support.link import lines
from tests.support.records import produce
from tests.support.rows import end, read_rows

UNCLEAN = "unclean.leader.election.enable"
MAY_LOSE = {UNCLEAN: "true", "min.insync.replicas": "1"}
"""The configuration of a copy that a follower may come to lead which does not hold all of it."""

_RECORDS = 50
_numbers = itertools.count()


@dataclass(slots=True)
class _Lossy:
    """A source topic of one partition, and its copy, which two of the destination's brokers hold."""

    run: Run
    topic: str

    @property
    def copy(self) -> str:
        return f"{self.topic}.copy"

    async def write(self) -> None:
        """Write some records at the source."""
        producer = Producer(self.run.network.source.client_configuration())
        await asyncio.to_thread(produce, producer, self.topic, _RECORDS)

    async def is_copied(self, count: int) -> int:
        """Returns when the copy has so many records; where it ends."""

        async def copied() -> bool:
            return await self.records() >= count

        await self.run.until(copied, f"copy {count} records of {self.topic}")
        return await asyncio.to_thread(end, self.run.network.destination, self.copy, 0)

    async def records(self) -> int:
        """The number of records in the copy."""
        return len(await asyncio.to_thread(read_rows, self.run.network.destination, self.copy, 0))

    async def is_named(self, first: int, last: int) -> None:
        """Returns when the replicator has said that the copy has lost these offsets."""
        loss = f"{self.copy}-0 has lost what it had acknowledged, offsets {first} to {last} of the copy"

        async def named() -> bool:
            return any(loss in line for line in lines(self.run.replicator.process))

        await self.run.until(named, f"say that {loss}")


@contextlib.asynccontextmanager
async def unclean_election(run: Run, chance: random.Random) -> AsyncIterator[None]:
    """The copy's follower becomes leader without the records that only the old leader had acknowledged.

    The partition stops and names what is lost; the others go on; by the operator's word the copy becomes whole again.
    """
    cluster = run.network.destination
    leader, follower = chance.sample([node.id for node in cluster.plan.nodes], 2)
    lossy = _Lossy(run, f"lossy{next(_numbers)}-{run.tag}")
    make_topic(cluster, NewTopic(lossy.copy, 1, replica_assignment=[[leader, follower]], config=MAY_LOSE))
    make_topics(run.network.source, {lossy.topic: 1})
    await lossy.write()
    kept = await lossy.is_copied(_RECORDS)
    await cluster.kill(follower)
    await lossy.write()
    ended = await lossy.is_copied(2 * _RECORDS)
    await cluster.kill(leader)
    await cluster.broker(follower).launch()
    await asyncio.to_thread(wait_for_leader, cluster, lossy.copy, follower)
    await cluster.restart(leader)
    await lossy.write()
    await lossy.is_named(kept, ended - 1)
    await run.goes_on()
    assert await lossy.records() == _RECORDS
    yield
    assert f"{lossy.topic}-0 goes on from offset {_RECORDS}" in await run.resume(lossy.topic, _RECORDS)
    await lossy.is_copied(3 * _RECORDS)
    assert await compared(run.network.source, cluster, {(lossy.topic, 0): (lossy.copy, 0)}) == []
    configure(cluster, lossy.copy, **{UNCLEAN: "false"})
