"""``appliance order``: a table of its commands. Each is declared like one of ``bin/appliance``."""

import argparse
import asyncio
import pkgutil
from collections.abc import Mapping
from pathlib import Path

from appliance.runtime.command import Command

SUBCOMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("run the process beside one cluster", "appliance.commands.order.run:RUN"),
    "status": ("show who is home, and what each cluster has", "appliance.commands.order.status:STATUS"),
    "origin": ("tell where a record of T-global came from", "appliance.commands.order.origin:ORIGIN"),
    "move": ("make another cluster home", "appliance.commands.order.change:MOVE"),
    "join": ("make a cluster a member", "appliance.commands.order.change:JOIN"),
    "leave": ("end a cluster's membership", "appliance.commands.order.change:LEAVE"),
    "alone": ("let the home show what nobody else has", "appliance.commands.order.change:ALONE"),
    "rebuild": ("make a T-global anew that is stopped", "appliance.commands.order.rebuild:REBUILD"),
    "resume": ("go on with an origin that has stopped", "appliance.commands.order.change:RESUME"),
}
"""The commands by name: a line of help, and where the command is."""


def subcommand(name: str) -> Command:
    """Import a command."""
    command: Command = pkgutil.resolve_name(SUBCOMMANDS[name][1])
    return command


def _add_options(command: argparse.ArgumentParser) -> None:
    commands = command.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
    for name, (summary, _) in SUBCOMMANDS.items():
        chosen = subcommand(name)
        own = commands.add_parser(name, help=summary, description=chosen.description)
        own.add_argument("--env-file", type=Path, default=argparse.SUPPRESS, metavar="PATH", help="the settings")
        chosen.add_options(own)


async def _run(parsed: argparse.Namespace, stopping: asyncio.Event) -> int | None:
    return await subcommand(parsed.subcommand).run(parsed, stopping)


ORDER = Command(
    "The total order of the records that producers write to one topic in several clusters: T-global in each of them.",
    _run,
    _add_options,
)
