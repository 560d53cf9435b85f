"""Faults of a link with several replicators, each on a host of its own: one copies, and the others stand by.

The checker says, as ever, that nothing is lost or doubled. Here the link's group says who copies, as its coordinator
shows it to anybody; and of each lane's owners there was none that stood by then. One replicator is left in the end.
"""

import asyncio
import contextlib
import random
import signal
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from bench.lib.replicators import GroupOfReplicators, described
from tests.faults.checker import taken
from tests.faults.history import Partition
from tests.faults.run import Run
from tests.faults.supervised import Supervised
from tests.support.leaders import elect_preferred_leaders


@dataclass(slots=True)
class Standing:
    """The replicators of a run's link: ``run.replicator`` is the active one, ``active`` has the hosts that were."""

    run: Run
    others: list[Supervised] = field(default_factory=list)
    active: list[str] = field(default_factory=list)
    _owners: Mapping[Partition, Sequence[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.active.append(self.run.replicator.host.name)
        self._owners = self.run.owners

    @property
    def all(self) -> list[Supervised]:
        """All of them, the active one first."""
        return [self.run.replicator, *self.others]

    async def add(self) -> None:
        """Start a replicator on a new host, which stands by."""
        standby = self.run.supervised()
        self.others.append(standby)
        await standby.start()
        await self.are_ready(self.all)

    async def are_ready(self, replicators: Collection[Supervised]) -> None:
        """Returns when just these are in the group, each could copy at once, and the active one is as it was."""
        names = sorted(each.host.name for each in replicators)

        async def ready() -> bool:
            group = await self.group()
            active = group.assignment.get("host")
            assert active in (None, self.active[-1]), f"{active} copies, {self.active} were expected"
            return names == sorted(each["host"] for each in group.members if each["ready"])

        await self.run.until(ready, f"stand by, beside {names}")

    async def hands_over(self, besides: Collection[Supervised] = ()) -> None:
        """Returns when another copies than before, and none of those."""
        gone = {self.active[-1], *(each.host.name for each in besides)}
        found: list[str] = []

        async def handed_over() -> bool:
            found[:] = [(await self.group()).assignment.get("host", self.active[-1])]
            return found[0] not in gone

        await self.run.until(handed_over, "hand over to a standby")
        await self.is_active(found[0])

    async def is_active(self, host: str) -> None:
        """The replicator of that host is the run's from now on; returns when it has copied everything."""
        (now,) = (each for each in self.all if each.host.name == host)
        self.others = [each for each in self.all if each is not now]
        self.run.replicator = now
        if host != self.active[-1]:
            self.active.append(host)
        await self.run.goes_on()

    async def is_empty(self) -> None:
        """Returns when nobody is in the group any more."""

        async def empty() -> bool:
            group = await self.group()
            return group.settled and not group.members

        await self.run.until(empty, "lose its members")

    async def group(self) -> GroupOfReplicators:
        """The group as its coordinator shows it."""
        return await described(self.run.network.destination, self.run.group)

    async def lose(self, *replicators: Supervised) -> None:
        """Kill them with all that they have started; nobody starts them again."""
        for each in replicators:
            await each.release()
        for each in replicators:
            for process in each.family():
                with contextlib.suppress(OSError):
                    process.kill()

    async def dismiss(self) -> None:
        """End the others, of which none has any defect, and none had a lane out of turn."""
        for each in self.others:
            await each.release()
            await each.process.stop(grace=60.0)
            status = await each.process.wait(0)
            assert status in (0, -signal.SIGKILL), each.process.failure(f"ended with status {status}")
            assert each.defects() == []
        assert [violation for lane in self.run.owners for violation in self._taken(lane)] == []

    def _taken(self, lane: Partition) -> Iterator[object]:
        before = len(self._owners.get(lane, ()))
        return taken(lane, self.run.owners[lane][before:], self.active)

    async def close(self) -> None:
        """Kill the others, and whatever is left of them."""
        for each in self.others:
            await each.close()


@contextlib.asynccontextmanager
async def standing_by(run: Run, count: int = 1) -> AsyncIterator[Standing]:
    """The run's replicator with that many standbys; all but the last active one have ended afterwards."""
    standing = Standing(run)
    try:
        for _ in range(count):
            await standing.add()
        yield standing
        await standing.dismiss()
    finally:
        await standing.close()


@contextlib.asynccontextmanager
async def active_stopped(run: Run, _: random.Random) -> AsyncIterator[None]:
    """The active one is stopped, as for an upgrade."""
    async with standing_by(run) as standing:
        active = run.replicator
        await active.release()
        await active.process.stop(grace=60.0)
        assert await active.process.wait(0) == 0
        await standing.hands_over()
        yield


@contextlib.asynccontextmanager
async def active_killed(run: Run, _: random.Random) -> AsyncIterator[None]:
    """The active one's host loses its power."""
    async with standing_by(run) as standing:
        await standing.lose(run.replicator)
        await standing.hands_over()
        yield


@contextlib.asynccontextmanager
async def active_killed_and_back(run: Run, _: random.Random) -> AsyncIterator[None]:
    """The active one is killed, and started again at once: it stands by."""
    async with standing_by(run) as standing:
        killed = run.replicator
        killed.kill()
        await standing.hands_over()
        await standing.are_ready(standing.all)
        yield


@contextlib.asynccontextmanager
async def two_of_three_killed(run: Run, chance: random.Random) -> AsyncIterator[None]:
    """The active one and a standby are gone at once."""
    async with standing_by(run, 2) as standing:
        gone = [run.replicator, chance.choice(standing.others)]
        await standing.lose(*gone)
        await standing.hands_over(besides=gone)
        yield


@contextlib.asynccontextmanager
async def active_killed_with_its_coordinator(run: Run, _: random.Random) -> AsyncIterator[None]:
    """The active one, and the broker that knows the group, are gone at once."""
    cluster = run.network.destination
    async with standing_by(run) as standing:
        node = (await standing.group()).coordinator
        await asyncio.gather(cluster.kill(node), standing.lose(run.replicator))
        try:
            await standing.hands_over()
            yield
        finally:
            await cluster.restart(node)
        await elect_preferred_leaders(cluster)


@contextlib.asynccontextmanager
async def asleep_until_another_copies(run: Run, pause: Callable[[Supervised], None]) -> AsyncIterator[None]:
    """The active one is paused so until another copies; awake again it stands by."""
    async with standing_by(run) as standing:
        asleep = run.replicator
        pause(asleep)
        try:
            await standing.hands_over()
        finally:
            asleep.resume()
        await standing.are_ready(standing.all)
        yield


@contextlib.asynccontextmanager
async def active_paused(run: Run, _: random.Random) -> AsyncIterator[None]:
    """The active one sleeps, perhaps within a transaction, until another copies; awake again it stands by."""
    async with asleep_until_another_copies(run, Supervised.pause):
        yield


@contextlib.asynccontextmanager
async def active_driver_paused(run: Run, _: random.Random) -> AsyncIterator[None]:
    """Only the driver of the active one sleeps, so that its tasks copy on, until another has fenced their lanes."""
    async with asleep_until_another_copies(run, Supervised.pause_alone):
        yield


@contextlib.asynccontextmanager
async def standby_paused(run: Run, _: random.Random) -> AsyncIterator[None]:
    """The standby sleeps until the group has given it up; awake again it stands by, and then it takes over."""
    async with standing_by(run) as standing:
        (asleep,) = standing.others
        asleep.pause()
        try:
            await standing.are_ready([run.replicator])
        finally:
            asleep.resume()
        await standing.are_ready(standing.all)
        await standing.lose(run.replicator)
        await standing.hands_over()
        yield


@contextlib.asynccontextmanager
async def active_cut_off(run: Run, _: random.Random) -> AsyncIterator[None]:
    """The active one does not reach the destination until another copies; back again it stands by."""
    async with standing_by(run) as standing:
        away = run.replicator
        with cut_off(run, away):
            await standing.hands_over()
        await standing.are_ready(standing.all)
        yield


def both_cut_off(first_back: int) -> Callable[[Run, random.Random], AbstractAsyncContextManager[None]]:
    """Both do not reach the destination; 0: the active one is the first to reach it again, 1: the standby is."""

    @contextlib.asynccontextmanager
    async def inject(run: Run, _: random.Random) -> AsyncIterator[None]:
        async with standing_by(run) as standing:
            first, second = standing.all if first_back == 0 else reversed(standing.all)
            with cut_off(run, second):
                with cut_off(run, first):
                    await standing.is_empty()
                await standing.is_active(first.host.name)
            await standing.are_ready(standing.all)
            yield

    return inject


@contextlib.contextmanager
def cut_off(run: Run, replicator: Supervised) -> Iterator[None]:
    """Within the block nothing passes between it and the destination's brokers, and neither end is told."""
    for proxy in run.network.before_brokers:
        proxy.silence(replicator.host.address)
    try:
        yield
    finally:
        for proxy in run.network.before_brokers:
            proxy.hear(replicator.host.address)


@contextlib.asynccontextmanager
async def started_at_once(run: Run, _: random.Random) -> AsyncIterator[None]:
    """Two replicators start where none is: one of them copies."""
    await run.replicator.release()
    await run.replicator.process.stop()
    run.replicator, other = rivals = [run.supervised(), run.supervised()]
    standing = Standing(run, [other])
    for rival in rivals:
        await rival.start()
    try:
        found = [""]

        async def assigned() -> bool:
            found[:] = [(await standing.group()).assignment.get("host", "")]
            return found[0] in [rival.host.name for rival in rivals]

        await run.until(assigned, "copy, or stand by")
        standing.active = found
        await standing.is_active(found[0])
        await standing.are_ready(standing.all)
        yield
        await standing.dismiss()
    finally:
        await standing.close()
