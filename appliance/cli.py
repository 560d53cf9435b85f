"""The commands of ``bin/appliance``."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from appliance import log
from appliance.errors import ApplianceError
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings

Command = Callable[[Settings, Path, asyncio.Event], Awaitable[None]]

_DESCRIPTION = """\
Copies Kafka topics between two networks that cannot see each other: exactly once, in order, byte for byte.

Each command runs in the foreground until SIGTERM or Ctrl-C, then finishes what it has begun and ends.
Exit codes: 0 done, 1 failed, 2 bad usage or settings.
"""

_COMMANDS: dict[str, tuple[str, str]] = {
    "source": (
        "the tunnel's end beside the source cluster",
        "Waits on TUNNEL_LISTEN:TUNNEL_PORT for the destination VM, and carries its connections to the source "
        "brokers that SOURCE_BROKER_SERVERS and SOURCE_BROKER_PATTERN allow, and to nothing else.",
    ),
    "destination": (
        "the tunnel's end beside the destination cluster, with the DNS shim",
        "Gives every source broker a loopback address, answers for their names on DNS_LISTEN, and carries what is "
        "connected there through the tunnel to SOURCE_SIDE_TUNNEL_IP:TUNNEL_PORT.",
    ),
    "replicate": (
        "copy the topics",
        "Copies every topic that matches REPLICA_TOPICS_SOURCE_REGEX to <topic>.<REPLICA_TOPICS_DEST_SUFFIX>. "
        "It may be killed at any instant and started anywhere: the destination cluster remembers how far it is.",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        return _run(parsed.command, parsed.env_file)
    except ApplianceError as error:
        for line in str(error).splitlines():
            print(f"appliance {parsed.command}: {line}", file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="appliance", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, description) in _COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=description)
        command.add_argument(
            "--env-file",
            type=Path,
            default=Path("setenv.sh"),
            metavar="PATH",
            help="the settings (default: ./setenv.sh); variables of the process environment win",
        )
    return parser


def _run(name: str, env_file: Path) -> int:
    command, role = _command(name)
    settings = read_settings(env_file, role, os.environ)
    log.configure(settings.log)
    asyncio.run(_until_signalled(command, settings, env_file.resolve()))
    return 0


def _command(name: str) -> tuple[Command, Role]:
    """A command's code is imported when it is run: the tunnel's ends need no Spark."""
    if name == "source":
        from appliance.gateway.source_side import run_source

        return lambda settings, _, stopping: run_source(settings, stopping), Role.SOURCE
    if name == "destination":
        from appliance.gateway.destination_side import run_destination

        return lambda settings, _, stopping: run_destination(settings, stopping), Role.DESTINATION
    from appliance.replicator.driver import run_replicator

    return run_replicator, Role.REPLICATOR


async def _until_signalled(command: Command, settings: Settings, env_file: Path) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    await command(settings, env_file, stopping)


if __name__ == "__main__":
    sys.exit(main())
