"""Our replicator and the other commands of a link, as a user runs them: the env file holds only settings without a
default."""

import contextlib
import json
import shlex
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from bench.lib.clusters import Pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from bench.lib.running import running
from testbed.process import OwnedProcess

_ANSWER_SECONDS = 600.0
_DEFAULTS: Mapping[str, str] = {}


@contextlib.asynccontextmanager
async def our_replicator(
    pair: Pair, load: Load, run: str, settings: Mapping[str, str] = _DEFAULTS
) -> AsyncIterator[Copying]:
    """Copy the load; see ``bench.lib.copying.Copier``. ``settings`` are variables that differ from those of a new
    link."""
    link = f"ours{run}"
    command = appliance_command("replicate", link_file(pair, load, link, link, settings))
    async with running("our replicator", command, pair.directory, log_name=link) as process:
        yield Copying(process, f"{load.topic}.{link}")


def link_file(pair: Pair, load: Load, link: str, name: str, settings: Mapping[str, str]) -> Path:
    """Write the env file of a link to copy this load; only we can read the file."""
    file = pair.directory / f"{name}.sh"
    file.touch(mode=0o600)
    file.write_text(env_text(pair.source.home_bootstrap, pair.destination.home_bootstrap, load.topic, link, settings))
    return file


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
    return exports({**values, **settings})


def exports(values: Mapping[str, str]) -> str:
    """The lines of an env file."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())


def appliance_command(command: str, env_file: Path, *options: str) -> list[str]:
    """The line of a command of ``bin/appliance``."""
    return [sys.executable, "-m", "appliance.cli", command, *options, "--env-file", str(env_file)]


async def answer(env_file: Path, command: str, *options: str) -> Any:
    """The JSON that a command prints for a link, between the lines of its log."""
    name = f"{env_file.stem}-{command}"
    line = appliance_command(command, env_file, "--json", *options)
    async with running(f"appliance {command}", line, env_file.parent, log_name=name) as process:
        await succeeds(process, _ANSWER_SECONDS)
        output = process.log_file.read_text()
    process.log_file.unlink()
    return json.JSONDecoder().raw_decode(output, output.index("{\n"))[0]


async def succeeds(process: OwnedProcess, timeout: float) -> None:
    """Wait until a program has ended by itself, with status 0."""
    status = await process.wait(timeout)
    if status:
        raise process.failure(f"ended with status {status}")
