"""Faults at random on clusters with one order, for as long as wanted; then all is well again, and is judged.

``python -m tests.support.order_storm --clusters 3 --minutes 10 --seed 1`` runs it by hand. Processes are killed and
stopped, the lines between them and other clusters are cut or fall silent, brokers are killed, and the home moves: by
an operator's command, or because a cluster stands for it at once.
"""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil

from testbed.process import OwnedProcess
from tests.faults.supervised import Supervised
from tests.support.commands import command
from tests.support.order_chains import Chains
from tests.support.order_clusters import Ordered, ordered, settled, until

_TOPIC, _PARTITIONS = "orders-storm", 2
_CHECK_EVERY = 20.0
_FAULTS = {"kill": 5, "pause": 3, "cut": 4, "silence": 3, "broker": 1, "stand": 2, "move": 2}
"""The faults, with how often each comes among so many."""


@dataclass
class Storm:
    """One run on these clusters; ``happened`` counts the faults."""

    clusters: Ordered
    seed: int
    happened: Counter[str] = field(default_factory=Counter)
    beside: dict[str, Supervised] = field(default_factory=dict)
    _dead: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    async def run(self, seconds: float) -> Chains:
        """Have faults for so long, then none, and judge the orders."""
        self.clusters.make_topic(_TOPIC, _PARTITIONS)
        async with self._processes(), self.clusters.followed(_TOPIC, _PARTITIONS) as chains:
            with self.clusters.written(_TOPIC, _PARTITIONS, self.seed):
                await until(lambda: min(chains.shown(*self.clusters.clusters)) > 100)
                await self._befall(seconds, chains)
            self.say("calm", *chains.shown(*self.clusters.clusters))
            await settled(chains, *self.clusters.clusters)
            early = f"ended with status {-signal.SIGUSR1}"  # it had no handler yet
            assert not [fault for each in self.beside.values() for fault in each.defects() if fault != early]
            return chains

    async def _befall(self, seconds: float, chains: Chains) -> None:
        end, checked = time.monotonic() + seconds, time.monotonic()
        befalling: set[asyncio.Task[None]] = set()
        while time.monotonic() < end:
            kind = self.chance.choices([*_FAULTS], [*_FAULTS.values()])[0]
            own, other = self.chance.sample([*self.clusters.clusters], 2)
            lasting = self.chance.uniform(0.2, 8.0)
            task = asyncio.create_task(self._fault(kind, own, other, lasting), name=kind)
            befalling.add(task)
            await asyncio.sleep(self.chance.expovariate(1 / 2.5))
            for done in [each for each in befalling if each.done()]:
                befalling.discard(done)
                done.result()
            if time.monotonic() - checked > _CHECK_EVERY:
                await asyncio.to_thread(chains.check)
                checked = time.monotonic()
                self.say("right", *chains.shown(*self.clusters.clusters), "of", sum(map(len, chains.origins.values())))
        await asyncio.gather(*befalling)

    async def _fault(self, kind: str, own: str, other: str, lasting: float) -> None:
        self.happened[kind] += 1
        self.say(kind, own, other, f"{lasting:.1f}")
        beside, line = self.beside[own], self.clusters.lines[own, other]
        if kind == "kill":
            beside.kill()
        elif kind == "pause":
            with contextlib.suppress(psutil.NoSuchProcess):  # it was killed just now
                process = beside.process
                beside.pause()
                await asyncio.sleep(2 * lasting)
                if process is beside.process:
                    beside.resume()
        elif kind in ("cut", "silence"):
            line.cut() if kind == "cut" else line.half_open()
            await asyncio.sleep(lasting)
            line.heal()
        elif kind == "move":
            words = "--to", other, "--yes", "--wait", "10"
            done = await command("order", self.clusters.settings(own), "move", *words)
            self.say("moved" if done.returncode == 0 else "not moved", done.stdout.strip(), done.stderr.strip())
        elif kind == "stand":
            with contextlib.suppress(ProcessLookupError):
                os.kill(beside.process.pid, signal.SIGUSR1)
        elif not self._dead:
            self._dead.add(own)
            await self.clusters.clusters[own].kill(0)
            await asyncio.sleep(lasting)
            await self.clusters.clusters[own].restart(0)
            self._dead.discard(own)

    @contextlib.asynccontextmanager
    async def _processes(self) -> AsyncIterator[None]:
        for name in self.clusters.clusters:
            self.beside[name] = Supervised(partial(self._start, name))
            await self.beside[name].start()
        try:
            yield
        finally:
            await asyncio.gather(*(each.close() for each in self.beside.values()))

    async def _start(self, name: str) -> OwnedProcess:
        line = [sys.executable, "-m", "tests.support.order_process", str(self.clusters.settings(name))]
        return await OwnedProcess.start(f"order of {name}", line, self.clusters.directory / f"{name}.log")

    def say(self, *words: object) -> None:
        """Tell what happens."""
        print(time.strftime("%H:%M:%S"), *words, flush=True)


async def storm(count: int, minutes: float, seed: int, directory: Path) -> None:
    """Start clusters, and let it blow."""
    async with ordered(count, directory) as clusters:
        one = Storm(clusters, seed)
        chains = await one.run(60 * minutes)
        records = sum(map(len, chains.orders.values()))
        one.say(f"seed {seed}: {records} records in one order in {count} clusters;", dict(one.happened))


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--logs", type=Path, help="an empty folder that keeps the processes' logs")
    arguments = parser.parse_args()
    seed = random.randrange(1 << 31) if arguments.seed is None else arguments.seed
    print("seed", seed, flush=True)
    with tempfile.TemporaryDirectory(prefix="storm-") as name:
        asyncio.run(storm(arguments.clusters, arguments.minutes, seed, arguments.logs or Path(name)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
