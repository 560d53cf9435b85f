"""Commands of ``bin/appliance`` as processes, on a link between two clusters without a tunnel."""

import asyncio
import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

from appliance.command_line import command as command_of
from appliance.command_line import parser
from appliance.errors import ApplianceError
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.settings import write_settings


def settings_file(pair: Pair, directory: Path, **changed: str) -> Path:
    """A setenv.sh for both clusters."""
    variables = {
        "SOURCE_CLUSTER_ID": pair.tag,
        "SOURCE_BROKER_SERVERS": ",".join(map(str, pair.orange.home_targets)),
        "SOURCE_SECURITY_PROTOCOL": "PLAINTEXT",
        "SOURCE_ROUTE": "direct",
        "DESTINATION_CLUSTER_ID": "grape",
        "DESTINATION_BROKER_SERVERS": ",".join(map(str, pair.grape.home_targets)),
        "DESTINATION_SECURITY_PROTOCOL": "PLAINTEXT",
        "REPLICA_TOPICS_SOURCE_REGEX": pair.naming.included.pattern,
        "REPLICA_TOPICS_DEST_SUFFIX": "copy",
    }
    return write_settings(directory / "setenv.sh", variables | changed)


def command_line(name: str, env_file: Path, *arguments: str) -> list[str]:
    """The command line of a command."""
    return [sys.executable, "-m", "appliance.cli", name, "--env-file", str(env_file), *arguments]


async def command(name: str, env_file: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command that has ended."""
    line = command_line(name, env_file, *arguments)
    return await asyncio.to_thread(
        subprocess.run, line, capture_output=True, text=True, timeout=PATIENCE, env=dict(os.environ), check=False
    )


async def answer(name: str, env_file: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of a command, and what it prints or its error; in the test's own process, without its signals."""
    chosen, printed = command_of(name), io.StringIO()
    parsed = parser(name, chosen).parse_args([name, "--env-file", str(env_file), *arguments])

    def run() -> int:
        with contextlib.redirect_stdout(printed):
            try:
                return asyncio.run(chosen.run(parsed, asyncio.Event())) or 0
            except ApplianceError as error:
                print(error)
                return error.exit_code

    return await asyncio.to_thread(run), printed.getvalue()
