"""A link between two clusters without a tunnel: the replicator as a process, and both proofs of its copies."""

import asyncio
import functools
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME

from demo.arrivals import Arrivals, follow
from demo.input import COPIED
from testbed.cluster import Cluster
from testbed.process import OwnedProcess
from testbed.tasks import end, in_thread
from tests.brokers.versions import KEY, LIVE, LIVE_PARTITIONS
from tests.faults.workload import Workload
from tests.support.patience import PATIENCE
from tests.support.rows import Row, read_partitions
from tests.support.settings import write_settings

PARTITIONS = [
    (name, number)
    for name, count in {LIVE: LIVE_PARTITIONS, **{topic.name: topic.partitions for topic in COPIED}}.items()
    for number in range(count)
]
"""The names of all copied topics."""

Rows = dict[tuple[str, int], list[Row]]
"""Records by partition."""


@dataclass(slots=True)
class Way:
    """A link from ``source`` to ``destination``; its files go to ``directory``."""

    source: Cluster
    destination: Cluster
    directory: Path
    live: Arrivals = field(default_factory=Arrivals)
    """The records of ``LIVE`` that a read_committed consumer has seen at the destination."""

    @property
    def suffix(self) -> str:
        """The suffix of the copies; the destination's own topics with it never match the regex."""
        return f"of.{self.source.plan.name}"

    def variables(self) -> dict[str, str]:
        """A valid setenv.sh. No topic that the regex matches has a second dot, but every copy has."""
        side: dict[str, str] = {}
        for name, cluster in (("SOURCE", self.source), ("DESTINATION", self.destination)):
            side |= {
                f"{name}_CLUSTER_ID": cluster.plan.name,
                f"{name}_BROKER_SERVERS": cluster.home_bootstrap,
                f"{name}_SECURITY_PROTOCOL": cluster.plan.security.value,
                f"{name}_API_KEY": KEY.key,
                f"{name}_API_SECRET": KEY.secret.reveal(),
                f"{name}_CA_FILE": str(cluster.ca_file or ""),
            }
        return side | {
            "SOURCE_ROUTE": "direct",
            "REPLICA_TOPICS_SOURCE_REGEX": r"orders\.[a-z0-9-]+",
            "REPLICA_TOPICS_DEST_SUFFIX": self.suffix,
            "CONSOLE_LISTEN": "127.0.0.1:0",
            "DISCOVERY_SECONDS": "1",
            "TASKS": "2",
        }

    @asynccontextmanager
    async def running(self, command: str, *options: str) -> AsyncIterator[OwnedProcess]:
        """Run one of the appliance's commands; SIGKILL it and all its descendants at the block's end."""
        env_file = write_settings(self.directory / "setenv.sh", self.variables())
        line = [sys.executable, "-m", "appliance.cli", command, *options, "--env-file", str(env_file)]
        environment = {**os.environ, "TMPDIR": str(self.directory)}
        process = await OwnedProcess.start(f"appliance {command}", line, self.directory / f"{command}.log", environment)
        try:
            yield process
        finally:
            await process.kill()

    @asynccontextmanager
    async def writing(self, seed: int) -> AsyncIterator[Workload]:
        """Producers write to ``LIVE``, with and without transactions, and abort some; its copy is read meanwhile."""
        places = [(LIVE, number) for number in range(LIVE_PARTITIONS)]
        workload = Workload(self.source.client_configuration(), places, seed)
        work = functools.partial(follow, self.destination.client_configuration(), [f"{LIVE}.{self.suffix}"], self.live)
        following = asyncio.create_task(in_thread(work), name="following")
        workload.start()
        try:
            yield workload
        finally:
            await workload.stop()
            await end(following)

    async def until_copied(self, replicator: OwnedProcess, count: int) -> None:
        """Wait for ``count`` more records in the copy of ``LIVE``."""
        before = self.live.count

        async def there() -> bool:
            return self.live.count >= before + count

        await replicator.wait_until(there, PATIENCE, f"copy {count} more records of {LIVE}")

    async def verified(self) -> dict[str, Any]:
        """The output of ``appliance verify`` once the running replicator has caught up."""
        async with self.running("verify", "--json", "--wait", str(PATIENCE)) as verify:
            code = await verify.wait(2 * PATIENCE)
        said: dict[str, Any] = json.loads(verify.log_file.read_text())
        assert said["equal"] == (code == 0), said
        return said

    async def both_sides(self) -> tuple[Rows, Rows]:
        """The expected and the actual records of the copies by source topic, read by an independent consumer."""
        copies = {(f"{topic}.{self.suffix}", number): (topic, number) for topic, number in PARTITIONS}
        originals = await asyncio.to_thread(read_partitions, self.source, PARTITIONS)
        copied = await asyncio.to_thread(read_partitions, self.destination, copies)
        expected = {partition: [_as_copied(row) for row in rows] for partition, rows in originals.items()}
        return expected, {copies[partition]: rows for partition, rows in copied.items()}


def _as_copied(row: Row) -> Row:
    """A copy has the timestamp of its original, but not the type LogAppendTime."""
    partition, key, value, headers, (_, timestamp) = row
    return partition, key, value, headers, (TIMESTAMP_CREATE_TIME, timestamp)
