"""The processes on both sides for all tests: each VPC's cluster and DNS server, and each VM's engine."""

import contextlib
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.rehearsal import kafka_installation
from tests.containers.clusters import Clusters
from tests.containers.sites import GRAPE, NEIGHBOURS, SIDES, Machines, Side, machines
from tests.support.docker_engine import Engine, engine
from tests.support.namespace import Namespace


@dataclass(frozen=True, slots=True)
class Vpcs(Clusters):
    """The machines and engines of both sides, by the side's name, and a directory for settings, logs and clusters."""

    machines: Mapping[str, Machines]
    engines: Mapping[str, Engine]
    directory: Path

    def vpc(self, side: Side) -> Namespace:
        """The VPC of a cluster."""
        return self.machines[GRAPE.name if side.name in NEIGHBOURS else side.name].vpc

    def page(self, side: Side, url: str) -> str:
        """A page as a browser on the VM of a side gets it."""
        asked = f"r.Request('{url}', headers={{'Accept': 'text/html'}})"
        code = f"import urllib.request as r; print(r.urlopen({asked}, timeout=30).read().decode())"
        return self.machines[side.name].vm.say(sys.executable, "-c", code)

    def command(self, side: Side, *words: str) -> list[str]:
        """The command line that runs ``words`` in the VPC of a cluster."""
        return self.vpc(side).command(*words)

    def say(self, side: Side, *words: str) -> str:
        """Run a command there, which must succeed; return its output."""
        return self.vpc(side).say(*words, environment=self.environment)


@contextlib.asynccontextmanager
async def vpcs(directory: Path) -> AsyncIterator[Vpcs]:
    """Both sides, ready."""
    await kafka_installation()
    with machines() as both:
        async with contextlib.AsyncExitStack() as undo:
            engines = {name: await undo.enter_async_context(engine(here.vm)) for name, here in both.items()}
            made = Vpcs(both, engines, directory)
            await undo.enter_async_context(made.running(SIDES.values()))
            yield made
