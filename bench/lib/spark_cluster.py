"""Our replicator with its tasks on a Spark cluster of this machine: a master and two workers, as a user starts them."""

import contextlib
import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from bench.lib.clusters import Pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from bench.lib.loopback import OWN_ADDRESS, free_port
from bench.lib.our_replicator import env_text, environment, our_replicator
from testbed.process import OwnedProcess

WORKERS = 2


@contextlib.asynccontextmanager
async def on_a_cluster(pair: Pair, load: Load, run: str, settings: Mapping[str, str]) -> AsyncIterator[Copying]:
    """Copies the load; see ``bench.lib.copying.Copier``. Each worker has as many cores as its share of TASKS."""
    both = {**settings, **_cluster_settings()}
    cores = int(settings["TASKS"]) // WORKERS
    file = pair.directory / f"cluster{run}.sh"
    bootstrap = pair.source.home_bootstrap, pair.destination.home_bootstrap
    file.touch(mode=0o600)
    file.write_text(env_text(*bootstrap, load.topic, f"ours{run}", both))
    async with contextlib.AsyncExitStack() as parts:
        for number in range(WORKERS + 1):
            options = ["worker", "--cores", str(cores)] if number else ["master"]
            part = await _start(pair.directory, file, f"spark{run}-{number}", options)
            parts.push_async_callback(part.kill)
        async with our_replicator(pair, load, run, both) as copying:
            yield copying


async def _start(directory: Path, env_file: Path, name: str, options: Sequence[str]) -> OwnedProcess:
    command = [sys.executable, "-m", "appliance.cli", "spark", *options, "--env-file", str(env_file)]
    return await OwnedProcess.start(name, command, directory / f"{name}.log", environment(os.environ, directory))


def _cluster_settings() -> dict[str, str]:
    master = f"spark://{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}"
    return {"SPARK_MASTER": master, "SPARK_AUTHENTICATE_SECRET": secrets.token_urlsafe(33)}
