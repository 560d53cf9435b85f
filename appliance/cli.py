"""The commands of ``bin/appliance``: a table of names; each room declares its own in its ``command.py``."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from appliance.errors import ApplianceError
from appliance.runtime.command import Command, Run, with_settings
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings

_DESCRIPTION = """\
Copies Kafka topics between two networks that cannot see each other: exactly once, in order, byte for byte.

Each command runs in the foreground; SIGTERM or Ctrl-C makes it finish what it has begun and end.
Exit codes: 0 done, 1 failed, 2 bad usage or settings.
"""


def _source() -> Command:
    from appliance.gateway.command import SOURCE

    return SOURCE


def _destination() -> Command:
    from appliance.gateway.command import DESTINATION

    return DESTINATION


def _replicate() -> Command:
    return Command(
        "Copies every topic that matches REPLICA_TOPICS_SOURCE_REGEX to <topic>.<REPLICA_TOPICS_DEST_SUFFIX>. "
        "It may be killed at any instant and started anywhere: the destination cluster remembers how far it is.",
        with_settings(Role.REPLICATOR, _run_replicator),
    )


def _spark() -> Command:
    from appliance.replicator.command import SPARK

    return SPARK


def _doctor() -> Command:
    from appliance.doctor.command import DOCTOR

    return DOCTOR


def _status() -> Command:
    from appliance.status.command import STATUS

    return STATUS


def _resume() -> Command:
    from appliance.replicator.command import RESUME

    return RESUME


def _verify() -> Command:
    from appliance.verify.command import VERIFY

    return VERIFY


COMMANDS: dict[str, tuple[str, Callable[[], Command]]] = {
    "source": ("the tunnel's end beside the source cluster", _source),
    "destination": ("the tunnel's end beside the destination cluster, with the DNS shim", _destination),
    "replicate": ("copy the topics", _replicate),
    "spark": ("a part of a Spark cluster, for more than one host can copy", _spark),
    "doctor": ("walk the path, and say where it breaks and what to change", _doctor),
    "status": ("say what is copied, what is behind, and what stops", _status),
    "resume": ("resume stopped partitions", _resume),
    "verify": ("prove that both sides hold the same", _verify),
}
"""By name, the line of the help, and the command, which is imported when it runs: the tunnel's ends need no Spark."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    name = next((argument for argument in arguments if argument in COMMANDS), "")
    command = COMMANDS[name][1]() if name else None
    parsed = _parser(name, command).parse_args(arguments)
    try:
        with asyncio.Runner(loop_factory=command.loop if command else None) as runner:
            return runner.run(_until_signalled(command.run, parsed)) if command else 2
    except ApplianceError as error:
        for line in str(error).splitlines():
            print(f"appliance {parsed.command}: {line}", file=sys.stderr)
        return error.exit_code


def _parser(chosen: str, command: Command | None) -> argparse.ArgumentParser:
    """The parser of all commands, of which the chosen one alone has its options."""
    parser = argparse.ArgumentParser(
        prog="appliance", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, _) in COMMANDS.items():
        own = commands.add_parser(name, help=summary)
        own.add_argument(
            "--env-file",
            type=Path,
            default=Path("setenv.sh"),
            metavar="PATH",
            help="the settings (default: ./setenv.sh); variables of the process environment win",
        )
        if command and name == chosen:
            own.description = command.description
            command.add_options(own)
    return parser


async def _run_replicator(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> None:
    """The replicator with its console beside it; Java, the slowest to start, starts while the rest is imported."""
    from appliance.replicator.spark.spark_jvm import spark_jvm
    from appliance.replicator.spark.tempdir import tempdir
    from appliance.settings.bound import Bound

    def bytes_per_second() -> int:
        return read_settings(parsed.env_file, Role.REPLICATOR, os.environ).engine.max_bytes_per_second

    bound = Bound(settings.engine.max_bytes_per_second, bytes_per_second)
    with tempdir(settings.replicator) as directory:
        async with spark_jvm(settings.engine, settings.replicator, parsed.env_file.resolve(), directory) as machine:
            from appliance.replicator.driver import run_replicator
            from appliance.status.service import console

            async with console(settings, bound):
                await run_replicator(settings, machine, stopping, bound)


async def _until_signalled(run: Run, parsed: argparse.Namespace) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return await run(parsed, stopping) or 0


if __name__ == "__main__":
    sys.exit(main())
