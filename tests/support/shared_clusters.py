"""The plain clusters that all workers of a session of pytest share.

The first worker that needs them starts them, and stops them when no other needs them any more. A worker that comes
later than that starts them anew.
"""

import asyncio
import contextlib
import fcntl
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO

from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Ports


@contextlib.asynccontextmanager
async def shared_clusters(plans: Sequence[ClusterPlan], directory: Path) -> AsyncIterator[list[Cluster]]:
    """The running clusters of these plans. Their files lie in ``directory``, which is the same for all workers."""
    clusters = [Cluster(plan, directory) for plan in plans]
    described = directory / "ports.json"
    async with contextlib.AsyncExitStack() as stack:
        first, users = (stack.enter_context((directory / name).open("w")) for name in ("first.lock", "users.lock"))
        await _lock(first, fcntl.LOCK_EX)
        await _lock(users, fcntl.LOCK_SH)
        if described.exists():
            for cluster, ports in zip(clusters, json.loads(described.read_text()), strict=True):
                cluster.use(Ports(**ports))
        else:
            for cluster in clusters:
                await stack.enter_async_context(cluster)
            described.write_text(json.dumps([asdict(cluster.ports) for cluster in clusters]))
            stack.callback(described.unlink)
            stack.push_async_callback(_lock, users, fcntl.LOCK_EX)
        fcntl.flock(first, fcntl.LOCK_UN)
        yield clusters


async def _lock(file: IO[str], kind: int) -> None:
    """Wait for a lock; the closing of the file releases it, and so does the end of the process."""
    await asyncio.to_thread(fcntl.flock, file, kind)
