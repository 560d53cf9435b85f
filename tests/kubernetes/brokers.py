"""Two Kafka clusters beside the pods, in the node's network::

    orange                    grape
    10.1.0.10, .11            10.2.0.10
    DNS 10.1.0.53             DNS 10.2.0.53

They are those of tests/containers: each has a topic, and a DNS server that alone knows the names of its brokers.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from testbed.kubernetes.node import Node
from testbed.rehearsal import kafka_installation
from tests.containers.clusters import SECONDS, Clusters, Records
from tests.containers.sites import SIDES, Side, names_in_vpc

_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Brokers(Clusters):
    """The clusters of a node; their files are below ``directory``."""

    node: Node
    directory: Path

    def command(self, _: Side, *words: str) -> list[str]:
        """The command line that runs ``words`` on the node, which has the networks of all clusters."""
        return self.node.command(*words)

    def say(self, _: Side, *words: str) -> str:
        """Run a command there, which must succeed; return its output."""
        return self.node.say(*words)

    async def wait_until_copied(self, source: Side, topic: str, destination: Side, copy: str) -> int:
        """Wait until the copy is as long as the original, and require that they are equal; return the number of
        records."""
        original = self.records(source, topic)
        copied: Records = []
        deadline = time.monotonic() + SECONDS
        while sum(map(len, copied)) < sum(map(len, original)):
            assert time.monotonic() < deadline, self.node.report()
            await asyncio.sleep(_POLL_SECONDS)
            known = copy in await asyncio.to_thread(self.topics, destination)
            copied = await asyncio.to_thread(self.records, destination, copy) if known else []
        assert copied == original
        return sum(map(len, original))


@contextlib.asynccontextmanager
async def brokers(node: Node, directory: Path) -> AsyncIterator[Brokers]:
    """Both clusters with their DNS servers, ready."""
    await kafka_installation()
    made = Brokers(node, directory)
    names = {name: address for side in SIDES.values() for name, address in names_in_vpc(side).items()}
    node.configure(names, [*names.values(), *(side.dns.host for side in SIDES.values())])
    async with made.running(SIDES.values()):
        yield made
