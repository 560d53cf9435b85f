"""Our replicator as a user runs it: its env file holds only settings without a default."""

import contextlib
import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import appliance
from appliance.settings.variables import NAMES
from bench.lib.clusters import Pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from testbed.process import OwnedProcess

_CHECKOUT = Path(appliance.__file__).parents[1]
_DEFAULTS: Mapping[str, str] = {}


@contextlib.asynccontextmanager
async def our_replicator(
    pair: Pair, load: Load, run: str, settings: Mapping[str, str] = _DEFAULTS
) -> AsyncIterator[Copying]:
    """Copy the load; see ``bench.lib.copying.Copier``. ``settings`` are variables that differ from those of a new
    link."""
    link = f"ours{run}"
    env_file = pair.directory / f"{link}.sh"
    bootstrap = pair.source.home_bootstrap, pair.destination.home_bootstrap
    env_file.touch(mode=0o600)
    env_file.write_text(env_text(*bootstrap, load.topic, link, settings))
    command = [sys.executable, "-m", "appliance.cli", "replicate", "--env-file", str(env_file)]
    process = await OwnedProcess.start(
        "our replicator", command, pair.directory / f"{link}.log", environment(os.environ, pair.directory)
    )
    try:
        yield Copying(process, f"{load.topic}.{link}")
    finally:
        await process.stop()


def env_text(source: str, destination: str, topic: str, link: str, settings: Mapping[str, str] = _DEFAULTS) -> str:
    """A setenv.sh for two clusters in plain text, each given as its bootstrap list."""
    values = {
        "SOURCE_CLUSTER_ID": link,
        "SOURCE_BROKER_SERVERS": source,
        "SOURCE_API_KEY": "",
        "SOURCE_API_SECRET": "",
        "SOURCE_SECURITY_PROTOCOL": "PLAINTEXT",
        "SOURCE_ROUTE": "direct",
        "DESTINATION_CLUSTER_ID": "destination",
        "DESTINATION_BROKER_SERVERS": destination,
        "DESTINATION_API_KEY": "",
        "DESTINATION_API_SECRET": "",
        "DESTINATION_SECURITY_PROTOCOL": "PLAINTEXT",
        "REPLICA_TOPICS_SOURCE_REGEX": topic,
        "REPLICA_TOPICS_DEST_SUFFIX": link,
    }
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in {**values, **settings}.items())


def environment(ours: Mapping[str, str], directory: Path) -> dict[str, str]:
    """The replicator's environment: ours, without the settings of a real link, which would override the file.

    ``directory`` is for its temporary files, which it leaves there when killed.
    """
    inherited = {name: value for name, value in ours.items() if name not in NAMES}
    return inherited | {"PYTHONPATH": str(_CHECKOUT), "TMPDIR": str(directory)}
