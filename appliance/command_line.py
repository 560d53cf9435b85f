"""A command line becomes the run of its command: the options, the event loop, the exit code."""

import argparse
import asyncio
import os
import pkgutil
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from appliance.command_table import COMMANDS
from appliance.errors import ApplianceError, Interrupted, ToolMissing, Unreachable
from appliance.listing import did_you_mean
from appliance.output import say, say_error, say_tracebacks
from appliance.program import IN_CONTAINER, PROGRAM
from appliance.runtime.command import Command, Run
from appliance.runtime.confinement import keep_memory_private
from appliance.settings.env_file import usual_file

_ENV_FILE = (
    "the settings (default: ./setenv.sh, which may be absent if they are in the process environment); the process "
    "environment takes precedence"
)


_OF_A_CONTAINER = Path("prepared", "replicator.sh")
"""The settings of the replicator's container, as the prepare script writes them on a VM that has one."""


def command(name: str) -> Command:
    """Import a command, and with it no more than it needs: the tunnel's ends import no Spark."""
    try:
        command: Command = pkgutil.resolve_name(COMMANDS[name].where)
    except ModuleNotFoundError as error:
        if error.name == "deploy":
            text = f"it is only in a checkout: run bin/appliance {name} in the link's folder on the VM"
            raise ToolMissing(text) from error
        if str(error.name).partition(".")[0] == "appliance":
            raise
        raise ToolMissing(f"the Python package {error.name} is missing: pip install kafka-cloud-replicator") from error
    return command


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    keep_memory_private()
    name = next((argument for argument in arguments if argument in COMMANDS), "")
    try:
        chosen = command(name) if name else None
        parsed = parser(name, chosen).parse_args(arguments)
        say_tracebacks()
        with asyncio.Runner(loop_factory=chosen.loop if chosen else None) as runner:
            return runner.run(_until_signalled(chosen.run, parsed)) if chosen else 2
    except ApplianceError as error:
        say_error(f"appliance {name}", error)
        if isinstance(error, Unreachable) and _OF_A_CONTAINER.exists() and PROGRAM != IN_CONTAINER:
            say(f"this VM runs containers, from which the brokers are reached: {IN_CONTAINER} {name}", error=True)
        return error.exit_code


async def _until_signalled(run: Run, parsed: argparse.Namespace) -> int:
    """Run until the end, or until SIGTERM or Ctrl-C; what these end before its end exits as killed by them."""
    stopping, loop, got = asyncio.Event(), asyncio.get_running_loop(), [signal.SIGINT]

    def stop(number: signal.Signals) -> None:
        got.append(number)
        stopping.set()
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)  # a second one ends it at once

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    try:
        return await run(parsed, stopping) or 0
    except Interrupted as error:
        say_error(f"appliance {parsed.command}", error)
        return 128 + got[-1]
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the loop leaves Python's, which prints a traceback


class Parser(argparse.ArgumentParser):
    """A parser that names the nearest option or command to a mistyped one, and takes no option that is shortened."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "allow_abbrev": False})

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse, and refuse what this parser does not know: those above it know no more."""
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [word.partition("=")[0] for word in unknown if word.startswith("-")]
            known = [option for action in self._actions for option in action.option_strings]
            self.error(did_you_mean(options[0], known, "option") if options else f"unexpected: {' '.join(unknown)}")
        return namespace, unknown

    def error(self, message: str) -> NoReturn:
        """Print the usage and the fault, and end with 2."""
        if found := re.search(r"argument \w*COMMAND: invalid choice: '(.*)' \(choose from (.*)\)", message):
            message = did_you_mean(found[1], re.findall(r"[\w-]+", found[2]), "command")
        for action in self._actions:
            if message == f"the following arguments are required: {action.dest}" and action.choices:
                *first, last = map(str, action.choices)
                message = f"choose {', '.join(first)}{' or ' * bool(first)}{last}"
        super().error(message)


def parser(chosen: str = "", command: Command | None = None) -> argparse.ArgumentParser:
    """The parser of all commands. Only the chosen command has its options."""
    whole = Parser("appliance", "appliance COMMAND [OPTION...]")
    whole.add_argument("-V", "--version", action="store_true", help="show the version")
    commands = whole.add_subparsers(prog="appliance", dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        own = commands.add_parser(name)
        if name == chosen and command:
            own.description = command.description
            if command.has_settings:
                own.add_argument(
                    "--env-file", type=Path, default=usual_file(os.environ), metavar="PATH", help=_ENV_FILE
                )
            command.add_options(own)
    return whole
