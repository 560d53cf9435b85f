"""A Spark cluster on this machine, and our replicator on it."""

import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from bench.lib.clusters import Pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from bench.lib.our_replicator import appliance_command, link_file, our_replicator
from bench.lib.running import OWN_ADDRESS, free_port, running

WORKERS = 2


@contextlib.asynccontextmanager
async def on_a_cluster(
    pair: Pair, load: Load, run: str, settings: Mapping[str, str], workers: int = WORKERS
) -> AsyncIterator[Copying]:
    """Copy the load; see ``bench.lib.copying.Copier``. Each worker has as many cores as its share of TASKS."""
    both = {**settings, **cluster_settings()}
    file = link_file(pair, load, f"ours{run}", f"cluster{run}", both)
    async with (
        spark_parts(file, workers, int(settings["TASKS"]) // workers),
        our_replicator(pair, load, run, both) as copying,
    ):
        yield copying


@contextlib.asynccontextmanager
async def spark_parts(env_file: Path, workers: int, cores: int) -> AsyncIterator[None]:
    """The master and the workers of a Spark cluster, each worker with so many cores."""
    async with contextlib.AsyncExitStack() as parts:
        for number in range(workers + 1):
            options = ["worker", "--cores", str(cores)] if number else ["master"]
            name = f"{env_file.stem}-spark-{number}"
            command = appliance_command("spark", env_file, *options)
            await parts.enter_async_context(running(name, command, env_file.parent))
        yield


def cluster_settings() -> dict[str, str]:
    """The settings of a new Spark cluster on this machine."""
    master = f"spark://{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}"
    return {"SPARK_MASTER": master, "SPARK_AUTHENTICATE_SECRET": secrets.token_urlsafe(33)}
