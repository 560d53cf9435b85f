"""One run: a link of its own between the two networks, producers before it, observers on both sides of it."""

import asyncio
import contextlib
import itertools
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import NewTopic

from testbed.process import OwnedProcess
from tests.faults.checker import Violation, violations, violations_so_far
from tests.faults.history import History, Partition
from tests.faults.injection.switches import Host, injected
from tests.faults.network import Network, make_topics
from tests.faults.observer import Observer
from tests.faults.supervised import Supervised
from tests.faults.views import Views
from tests.faults.workload import Workload
from tests.support.administration import make_topic, topics
from tests.support.patience import PATIENCE
from tests.support.releases import Release

RECOVERY = 120.0
"""Seconds within which everything that was written has to be copied, once a fault is healed."""

_PARTITIONS = {"orders": 3, "payments": 2}
_FRAGILE = "refunds"
"""A topic of one partition, which one broker holds alone; transactions that stay open with it would hold up others."""

_LANES = 2
_POLL = 0.1
_numbers = itertools.count()


@dataclass(slots=True)
class Run:
    """Several may share the network: their topics and their links are their own."""

    network: Network
    seed: int
    directory: Path
    release: Release | None = None
    """The release whose replicators and commands are started from now on; None is the code of the tests."""
    tag: str = field(default_factory=lambda: f"{os.getpid()}-{next(_numbers)}")
    replicator: Supervised = field(init=False)
    workload: Workload = field(init=False)
    views: Views = field(init=False)
    _hosts: Iterator[int] = field(default_factory=itertools.count)
    _source: Observer = field(init=False)
    _destination: Observer = field(init=False)

    @property
    def partitions(self) -> dict[Partition, Partition]:
        """Each source partition, and its copy."""
        sources = [(f"{topic}-{self.tag}", n) for topic, count in _PARTITIONS.items() for n in range(count)]
        return {(topic, n): (f"{topic}.copy", n) for topic, n in [*sources, self.fragile]}

    @property
    def fragile(self) -> Partition:
        """The source partition that has no leader while its only broker is away."""
        return f"{_FRAGILE}-{self.tag}", 0

    @property
    def group(self) -> str:
        """The group of the replicators of this run's link."""
        return f"replicator-{self._cluster_id}"

    @property
    def positions_topic(self) -> str:
        """The positions topic of this run's link."""
        return f"{self.group}.positions"

    @property
    def owners(self) -> dict[Partition, list[str]]:
        """The hosts that have taken each lane, in their order, as seen so far; a lane is its partition of positions."""
        return {(self.positions_topic, lane): list(hosts) for lane, hosts in self._destination.owners.items()}

    def supervised(self, mutation: str = "") -> Supervised:
        """A replicator of this run's link on a host of its own, not yet started."""
        number = next(self._hosts)
        host = Host(f"vm{number}", f"127.0.39.{1 + number % 250}")
        return Supervised(lambda: self._start_replicator(mutation, host), host)

    def older(self, code: Path) -> Supervised:
        """A replicator of this run's link with another release's code, not yet started."""
        environment = {**os.environ, "PYTHONPATH": str(code), "PYTHONSAFEPATH": "1"}
        return Supervised(lambda: self.network.link.start("replicate", environment, **self.variables()))

    async def replaced(self, mutation: str = "") -> Supervised:
        """Start another replicator, from now on the run's; the older one is the caller's, to watch and to end."""
        older, self.replicator = self.replicator, self.supervised(mutation)
        await older.release()
        await self.replicator.start()
        return older

    async def resume(self, topic: str, start: int) -> str:
        """Have partition 0 of a topic go on from a source offset, as an operator does; what the command has said."""
        return await self.command("resume", "--topic", topic, "--partition", "0", "--from", str(start))

    async def command(self, name: str, *options: str) -> str:
        """Run a command on the link; what it has said."""
        command = await self.network.link.start(name, options=options, release=self.release, **self.variables())
        assert await command.wait(RECOVERY) == 0, command.failure("failed")
        return command.log_file.read_text()

    async def goes_on(self, besides: Collection[Partition] = ()) -> None:
        """Returns when every partition was written to after this moment, and all of that was seen at the destination.

        Nothing is awaited of those that are excepted.

        Raises:
            ProcessFailed: that did not come to pass; the replicator's last words are in the text.
        """
        before = self.workload.written()

        async def written() -> bool:
            return all(
                count > before[partition]
                for partition, count in self.workload.written().items()
                if partition not in besides
            )

        await self.until(written, "let the source be written to")
        await self._caught_up(besides)

    async def _caught_up(self, besides: Collection[Partition] = ()) -> None:
        written = self.workload.written()

        async def copied() -> bool:
            seen = self._destination.counts().items()
            return all(count >= written[partition] for partition, count in seen if partition not in besides)

        await self.until(copied, "copy all that was written")

    async def until(self, done: Callable[[], Awaitable[bool]], what: str) -> None:
        """Ask until the answer is yes; ``what`` completes the sentence "the replicator did not ...".

        Raises:
            ProcessFailed: it was not, for two minutes.
        """
        try:
            async with asyncio.timeout(RECOVERY):
                while not await done():
                    await asyncio.sleep(_POLL)
        except TimeoutError as error:
            raise self.replicator.process.failure(f"did not {what} within {RECOVERY:g} s") from error

    def violations_so_far(self) -> list[Violation]:
        """The violations in the history so far."""
        observed, progress = self._destination.tracks, self._destination.progress
        source, aborted = self._source.tracks, self.workload.aborted
        return violations_so_far(History({}, aborted, source, observed, observed, progress))

    def defects(self) -> list[str]:
        """The unexplained ends and errors of the processes; see ``Supervised``."""
        parts = (self.replicator, self.network.tunnel_client, self.network.tunnel_server)
        return [defect for part in parts for defect in part.defects()]

    async def finish(self) -> list[Violation]:
        """Stop writing, wait until all is copied, end the replicator, read both sides anew, and say what is wrong."""
        await self.workload.stop()
        await self._caught_up()
        await self.views.stop()
        await self.replicator.release()
        await self.replicator.process.stop()
        source, destination = self._source_observer(), self._destination_observer()
        await source.read_to_ends()
        await destination.read_to_ends()
        await self._observed_as_far_as(destination)
        history = History(
            self.workload.acknowledged,
            self.workload.aborted,
            source.tracks,
            self._destination.tracks,
            destination.tracks,
            self._destination.progress,
        )
        return [*violations(history), *self.views.denied_by(source.tracks)]

    @contextlib.asynccontextmanager
    async def going(self, mutation: str = "") -> AsyncIterator["Run"]:
        """A run from its first record on; ready when the replicator has caught up for the first time."""
        try:
            await self._prepare()
            await self._replicate(mutation)
            yield self
        finally:
            await self._close()

    async def _prepare(self) -> None:
        make_topics(self.network.source, {f"{topic}-{self.tag}": count for topic, count in _PARTITIONS.items()})
        make_topic(self.network.source, NewTopic(self.fragile[0], 1, 1, config={"min.insync.replicas": "1"}))
        self._source = self._source_observer()
        self._source.start()
        partitions = [partition for partition in self.partitions if partition != self.fragile]
        self.workload = Workload(self.network.source.client_configuration(), partitions, self.seed, [self.fragile])
        self.workload.start()

    async def _replicate(self, mutation: str) -> None:
        self.replicator = self.supervised(mutation)
        await self.replicator.start()
        made = {self.positions_topic, *(copy for copy, _ in self.partitions.values())}

        async def there() -> bool:
            return made <= await asyncio.to_thread(topics, self.network.destination)

        await self.until(there, "make its topics")
        self._destination = self._destination_observer()
        self._destination.start()
        chance = random.Random(f"{self.seed} views")
        self.views = Views(lambda: self.replicator, self._source.counts, chance)
        await self.goes_on()

    async def _close(self) -> None:
        for part in ("views", "workload", "_source", "_destination"):
            if hasattr(self, part):
                with contextlib.suppress(AssertionError):
                    await getattr(self, part).stop()
        if hasattr(self, "replicator"):
            await self.replicator.close()

    def _source_observer(self) -> Observer:
        return Observer(
            self.network.source.client_configuration(), {partition: partition for partition in self.partitions}
        )

    def _destination_observer(self) -> Observer:
        names = {copy: partition for partition, copy in self.partitions.items()}
        return Observer(self.network.destination.client_configuration(), names, (self.positions_topic, _LANES))

    async def _observed_as_far_as(self, there: Observer) -> None:
        """Give the live observer time to see what is there; if it does not, the checker will say so."""
        last = {partition: progress[-1:] for partition, progress in there.progress.items()}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self._destination.counts() != there.counts() or last != {
                    partition: progress[-1:] for partition, progress in self._destination.progress.items()
                }:
                    await asyncio.sleep(_POLL)

    @property
    def _cluster_id(self) -> str:
        return f"orange-{self.tag}"

    def variables(self) -> dict[str, str]:
        """The settings in the setenv.sh of this run's link."""
        return {
            "SOURCE_CLUSTER_ID": self._cluster_id,
            "DESTINATION_BROKER_SERVERS": ",".join(str(target) for target in self.network.destination.vpc_targets),
            "REPLICA_TOPICS_SOURCE_REGEX": f".*-{self.tag}",
            "LANES": str(_LANES),
            "TASKS": str(_LANES),
            "COMMIT_INTERVAL_MS": "150",
            "TRANSACTION_TIMEOUT_SECONDS": "5",
        }

    async def _start_replicator(self, mutation: str, host: Host) -> OwnedProcess:
        environment = injected(self.directory, mutation, host)
        return await self.network.link.start("replicate", environment, release=self.release, **self.variables())
