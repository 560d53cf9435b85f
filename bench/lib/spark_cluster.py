"""A Spark cluster on this machine, and our replicator on it."""

import contextlib
import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from bench.lib.clusters import Pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from bench.lib.our_replicator import env_text, environment, our_replicator
from bench.lib.running import OWN_ADDRESS, free_port
from testbed.process import OwnedProcess

WORKERS = 2


@contextlib.asynccontextmanager
async def on_a_cluster(
    pair: Pair, load: Load, run: str, settings: Mapping[str, str], workers: int = WORKERS
) -> AsyncIterator[Copying]:
    """Copy the load; see ``bench.lib.copying.Copier``. Each worker has as many cores as its share of TASKS."""
    both = {**settings, **cluster_settings()}
    cores = int(settings["TASKS"]) // workers
    file = pair.directory / f"cluster{run}.sh"
    bootstrap = pair.source.home_bootstrap, pair.destination.home_bootstrap
    file.touch(mode=0o600)
    file.write_text(env_text(*bootstrap, load.topic, f"ours{run}", both))
    async with contextlib.AsyncExitStack() as parts:
        for number in range(workers + 1):
            options = ["worker", "--cores", str(cores)] if number else ["master"]
            part = await start_part(pair.directory, file, f"spark{run}-{number}", options)
            parts.push_async_callback(part.kill)
        async with our_replicator(pair, load, run, both) as copying:
            yield copying


async def start_part(directory: Path, env_file: Path, name: str, options: Sequence[str]) -> OwnedProcess:
    """A master or a worker of a Spark cluster."""
    command = [sys.executable, "-m", "appliance.cli", "spark", *options, "--env-file", str(env_file)]
    return await OwnedProcess.start(name, command, directory / f"{name}.log", environment(os.environ, directory))


def cluster_settings() -> dict[str, str]:
    """The settings of a new Spark cluster on this machine."""
    master = f"spark://{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}"
    return {"SPARK_MASTER": master, "SPARK_AUTHENTICATE_SECRET": secrets.token_urlsafe(33)}
