"""The table of faults: each is injected on entering its context, and healed, if necessary, on leaving it.

``hold`` is the range of its length in seconds; chance decides the rest.

The *executor* is the Python process in which Spark runs a task: it alone copies. The executor's other half, the JVM, is
in local mode the driver's own process, which "replicator killed" and "replicator paused" hit with all the rest.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from testbed.cluster import Cluster
from tests.faults import loss, rivals, standbys
from tests.faults.injection.switches import CrashPoint, arm
from tests.faults.kafka_proxy import Api, Moment
from tests.faults.network import Network
from tests.faults.proxy import Proxy
from tests.faults.run import Run
from tests.faults.supervised import Supervised, has_ended
from tests.support.administration import topics
from tests.support.leaders import described, elect_preferred_leaders, move
from tests.support.link import lines
from tests.support.patience import PATIENCE

Injection = Callable[[Run, random.Random], AbstractAsyncContextManager[None]]

_TRANSACTION_GIVEN_UP = 17.0
"""Seconds: the suite's transaction timeout, and the ten after which the coordinator looks for what has passed it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One line of the table."""

    inject: Injection
    hold: tuple[float, float] = (0.0, 0.0)

    async def strike(self, run: Run, chance: random.Random) -> None:
        """Inject, hold, heal."""
        async with self.inject(run, chance):
            await asyncio.sleep(chance.uniform(*self.hold))


def _killed(part: "Part") -> Injection:
    """SIGKILL to a process; the supervisor starts it again."""

    @contextlib.asynccontextmanager
    async def inject(run: Run, _: random.Random) -> AsyncIterator[None]:
        family = part(run).family()
        part(run).kill()
        yield
        async with asyncio.timeout(PATIENCE):
            while not all(map(has_ended, family)):
                await asyncio.sleep(0.1)

    return inject


def _paused(part: "Part") -> Injection:
    @contextlib.asynccontextmanager
    async def inject(run: Run, _: random.Random) -> AsyncIterator[None]:
        part(run).pause()
        try:
            yield
        finally:
            part(run).resume()

    return inject


@contextlib.asynccontextmanager
async def _executor_killed(run: Run, chance: random.Random) -> AsyncIterator[None]:
    chance.choice(run.replicator.executors()).kill()
    yield


@contextlib.asynccontextmanager
async def _executor_paused(run: Run, chance: random.Random) -> AsyncIterator[None]:
    executor = chance.choice(run.replicator.executors())
    executor.suspend()
    try:
        yield
    finally:
        executor.resume()


def _broker_killed(side: "Side") -> Injection:
    """Its partitions get other leaders, and get it back once it has caught up again."""

    @contextlib.asynccontextmanager
    async def inject(run: Run, chance: random.Random) -> AsyncIterator[None]:
        cluster = side(run.network)
        node = chance.choice(cluster.plan.nodes).id
        await cluster.kill(node)
        try:
            yield
        finally:
            await cluster.restart(node)
        await elect_preferred_leaders(cluster)

    return inject


def _leaders_moved(side: "Side") -> Injection:
    """Every partition gets its next replica for a leader, while all brokers live."""

    @contextlib.asynccontextmanager
    async def inject(run: Run, _: random.Random) -> AsyncIterator[None]:
        cluster = side(run.network)
        known = await asyncio.to_thread(described, cluster, sorted(topics(cluster)))
        await move(cluster, {partition: [*found.replicas[1:], found.replicas[0]] for partition, found in known.items()})
        yield

    return inject


@contextlib.asynccontextmanager
async def _leader_lost(run: Run, _: random.Random) -> AsyncIterator[None]:
    """A partition has no leader until its only broker is back; it is named, and the others go on meanwhile."""
    cluster, partition = run.network.source, run.fragile
    (node,) = (await asyncio.to_thread(described, cluster, [partition[0]]))[partition].replicas
    await cluster.kill(node)
    try:
        async with asyncio.timeout(PATIENCE):
            while (await asyncio.to_thread(described, cluster, [partition[0]]))[partition].leader >= 0:
                await asyncio.sleep(0.2)
        await run.goes_on(besides=[partition])
        async with asyncio.timeout(PATIENCE):
            while not any(f"{partition[0]}-0 has no leader now" in line for line in lines(run.replicator.process)):
                await asyncio.sleep(0.2)
        yield
    finally:
        await cluster.restart(node)


@contextlib.asynccontextmanager
async def _tunnel_cut(run: Run, _: random.Random) -> AsyncIterator[None]:
    run.network.wire.cut()
    yield
    run.network.wire.heal()


@contextlib.asynccontextmanager
async def _tunnel_half_open(run: Run, _: random.Random) -> AsyncIterator[None]:
    run.network.wire.half_open()
    yield
    run.network.wire.heal()


@contextlib.asynccontextmanager
async def _tunnel_slow(run: Run, _: random.Random) -> AsyncIterator[None]:
    run.network.wire.slow(delay=0.1, bandwidth=50_000)
    yield
    run.network.wire.heal()


def _swallowed(wires: "Wires") -> Injection:
    """Some connections go dead and nobody is told; nothing is made good afterwards."""

    @contextlib.asynccontextmanager
    async def inject(run: Run, chance: random.Random) -> AsyncIterator[None]:
        async with asyncio.timeout(PATIENCE):
            while not sum([proxy.swallow(chance) for proxy in wires(run.network)]):
                await asyncio.sleep(0.1)
        yield

    return inject


def _tripped(api: Api, moment: Moment) -> Injection:
    @contextlib.asynccontextmanager
    async def inject(run: Run, _: random.Random) -> AsyncIterator[None]:
        run.network.tripwire.arm(api, moment)
        async with asyncio.timeout(PATIENCE):
            await run.network.tripwire.sprung.wait()
        yield

    return inject


def _crashed(point: CrashPoint) -> Injection:
    @contextlib.asynccontextmanager
    async def inject(run: Run, _: random.Random) -> AsyncIterator[None]:
        file = arm(run.directory, point)
        async with asyncio.timeout(PATIENCE):
            while file.exists():
                await asyncio.sleep(0.02)
        yield

    return inject


Part = Callable[[Run], Supervised]
Side = Callable[[Network], Cluster]
Wires = Callable[[Network], Sequence[Proxy]]

_PARTS: dict[str, Part] = {
    "replicator": lambda run: run.replicator,
    "tunnel client": lambda run: run.network.tunnel_client,
    "tunnel server": lambda run: run.network.tunnel_server,
}
_SIDES: dict[str, Side] = {"source": lambda network: network.source, "destination": lambda network: network.destination}

FAULTS: dict[str, Fault] = {
    **{f"{name} killed": Fault(_killed(part)) for name, part in _PARTS.items()},
    "executor killed": Fault(_executor_killed),
    **{f"{name} paused": Fault(_paused(part), (1, 3)) for name, part in _PARTS.items()},
    "executor paused": Fault(_executor_paused, (1, 3)),
    "replicator paused past its transaction's timeout": Fault(
        _paused(_PARTS["replicator"]), (_TRANSACTION_GIVEN_UP, _TRANSACTION_GIVEN_UP)
    ),
    "active replicator stopped": Fault(standbys.active_stopped),
    "active replicator killed": Fault(standbys.active_killed),
    "active replicator killed and back at once": Fault(standbys.active_killed_and_back),
    "active replicator killed with its coordinator": Fault(standbys.active_killed_with_its_coordinator),
    "active replicator and a standby of two killed": Fault(standbys.two_of_three_killed),
    "active replicator paused until another copies": Fault(standbys.active_paused),
    "active replicator's driver paused until another copies": Fault(standbys.active_driver_paused),
    "active replicator cut off until another copies": Fault(standbys.active_cut_off),
    "standby paused, and active replicator killed": Fault(standbys.standby_paused),
    "both replicators cut off, the active one back first": Fault(standbys.both_cut_off(0)),
    "both replicators cut off, the standby back first": Fault(standbys.both_cut_off(1)),
    "two replicators start at once": Fault(standbys.started_at_once),
    "a task of Spark tried twice": Fault(rivals.task_tried_twice),
    **{f"{name} broker killed": Fault(_broker_killed(side), (3, 5)) for name, side in _SIDES.items()},
    **{f"{name} leaders move": Fault(_leaders_moved(side)) for name, side in _SIDES.items()},
    "a source partition loses its leader": Fault(_leader_lost),
    "an unclean election at the destination": Fault(loss.unclean_election),
    "tunnel cut": Fault(_tunnel_cut, (1, 3)),
    "tunnel half-open": Fault(_tunnel_half_open, (1, 3)),
    "tunnel slow": Fault(_tunnel_slow, (2, 4)),
    "source connections black-holed": Fault(_swallowed(lambda network: [network.wire])),
    "destination connections black-holed": Fault(_swallowed(lambda network: network.before_brokers)),
    "a Produce black-holed": Fault(_tripped(Api.PRODUCE, Moment.SILENT)),
    "reset in mid-Produce": Fault(_tripped(Api.PRODUCE, Moment.IN_REQUEST)),
    "reset between Produce and its answer": Fault(_tripped(Api.PRODUCE, Moment.BEFORE_ANSWER)),
    "reset between AddPartitionsToTxn and its answer": Fault(_tripped(Api.ADD_PARTITIONS_TO_TXN, Moment.BEFORE_ANSWER)),
    "reset between EndTxn and its answer": Fault(_tripped(Api.END_TXN, Moment.BEFORE_ANSWER)),
    **{f"crash {point.value}": Fault(_crashed(point)) for point in CrashPoint},
}
