"""The commands of ``bin/appliance``."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from appliance.errors import ApplianceError
from appliance.runtime import log
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings, Side

Command = Callable[[Settings, argparse.Namespace, asyncio.Event], Awaitable[int | None]]
"""Runs until it is done, or until the event is set; gives the exit code, None for 0."""

_DESCRIPTION = """\
Copies Kafka topics between two networks that cannot see each other: exactly once, in order, byte for byte.

Each command runs in the foreground; SIGTERM or Ctrl-C makes it finish what it has begun and end.
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
    "spark": (
        "a part of a Spark cluster, for more than one host can copy",
        "Runs the master that SPARK_MASTER=spark://host:port names, or a worker of it on a host that is to copy. "
        "Such a host has the same settings, but for its own addresses, and `appliance destination` runs there too.",
    ),
    "doctor": (
        "walk the path, and say where it breaks and what to change",
        "Tries one step after the other, from the settings to the last permission, as one of the two VMs sees it, and "
        "names what to change where one fails; what stands on it is not tried then. It may run at any time beside the "
        "other commands, and leaves nothing behind. Exit code 0 when the path is whole, 1 when it is broken.",
    ),
    "status": (
        "say what is copied, what is behind, and what stops",
        "Says from what both clusters have committed, per topic and partition: copied, lag in records and seconds, "
        "rate, what is stopped, why and since when, gaps, and which replicator has which lane. No replicator need run. "
        "What cannot be known is unknown, never 0. Exit code 0 when all is copied or being copied; 1 when something is "
        "stopped or unknown, or no replicator of the link has ever run.",
    ),
    "resume": (
        "let partitions that have stopped go on",
        "Without --from they are tried again where they stopped, once the reason is gone. With --from they go on "
        "elsewhere, and what is left out is written to the gap ledger; a copy that no position accounts for is adopted "
        "so. Each change is told before it is made. No replicator has to be stopped or started.",
    ),
    "verify": (
        "prove that both sides hold the same",
        "Reads every copied topic at the source, up to where it ends now, and its copy, and compares them: key, value, "
        "headers, time and place of each record. Exit code 0 when the copies are equal as far as both sides still keep "
        "them; 1 when one is behind, differs, is missing or cannot be read.",
    ),
}


def _doctor_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "side",
        choices=[side.value for side in Side],
        help="the VM on which it runs; the destination's walk is the whole path, and goes through the tunnel",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def _spark_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("part", choices=["master", "worker"], help="which part of the cluster this process is")
    command.add_argument("--cores", type=int, metavar="N", help="how many tasks a worker takes at once (default: all)")
    command.add_argument("--host", metavar="ADDRESS", help="at which a worker is reached (default: by SPARK_MASTER)")


def _status_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--topic", action="append", default=[], metavar="T", help="only this source topic; repeatable")
    command.add_argument("--json", action="store_true", help="print JSON with every partition instead of a table")
    command.add_argument("--watch", action="store_true", help="look again every 2 s until Ctrl-C")


def _resume_options(command: argparse.ArgumentParser) -> None:
    subject = command.add_mutually_exclusive_group(required=True)
    subject.add_argument("--topic", metavar="T", help="the source topic")
    subject.add_argument(
        "--adopt-positions",
        action="store_true",
        help="go on with the positions topic as it is now",
    )
    command.add_argument(
        "--partition", type=int, metavar="N", help="this partition, stopped or not (default: all that are stopped)"
    )
    command.add_argument(
        "--from",
        dest="start",
        default="retry",
        metavar="WHERE",
        help="earliest, latest or a source offset (default: where it stopped)",
    )
    command.add_argument("--take-over", action="store_true", help="make a copy that is another link's this link's")
    command.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")


def _verify_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--topic", action="append", default=[], metavar="T", help="only this source topic; repeatable")
    command.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    command.add_argument(
        "--wait",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="how long the destination may take to catch up with what the source holds now (default: 10)",
    )


_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "doctor": _doctor_options,
    "spark": _spark_options,
    "status": _status_options,
    "resume": _resume_options,
    "verify": _verify_options,
}
"""What a command takes beside the settings."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        return _run(parsed)
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
        if name in _OPTIONS:
            _OPTIONS[name](command)
    return parser


def _run(parsed: argparse.Namespace) -> int:
    if parsed.command == "doctor":
        return asyncio.run(_until_signalled(lambda stopping: _doctor(parsed, stopping)))
    command, role = _command(parsed.command)
    settings = read_settings(parsed.env_file, role, os.environ)
    log.configure(settings.log)
    with asyncio.Runner(loop_factory=_event_loop(parsed.command)) as runner:
        return runner.run(_until_signalled(lambda stopping: command(settings, parsed, stopping)))


def _event_loop(command: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop for the tunnel's ends: it spares each message and each new connection a tenth; None is asyncio's."""
    if command not in ("source", "destination"):
        return None
    import uvloop

    return uvloop.new_event_loop


def _command(name: str) -> tuple[Command, Role]:
    """A command's code is imported when it is run: the tunnel's ends need no Spark."""
    if name == "source":
        from appliance.gateway.source_side import run_source

        return lambda settings, _, stopping: run_source(settings, stopping), Role.SOURCE
    if name == "destination":
        from appliance.gateway.destination_side import run_destination

        return lambda settings, _, stopping: run_destination(settings, stopping), Role.DESTINATION
    if name == "verify":
        from appliance.verify.command import run_verify

        return (
            lambda settings, parsed, stopping: run_verify(settings, parsed.topic, parsed.json, parsed.wait, stopping),
            Role.REPLICATOR,
        )
    if name == "resume":
        return _resume, Role.REPLICATOR
    if name == "status":
        from appliance.status.command import run_status

        return (
            lambda settings, parsed, stopping: run_status(settings, parsed.topic, parsed.json, parsed.watch, stopping),
            Role.REPLICATOR,
        )
    return (_spark if name == "spark" else _replicate), Role.REPLICATOR


async def _doctor(parsed: argparse.Namespace, stopping: asyncio.Event) -> int:
    """Reads the settings itself: their faults are its first finding."""
    from appliance.doctor.command import run_doctor

    return await run_doctor(Side(parsed.side), parsed.env_file, os.environ, parsed.json, stopping)


async def _replicate(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> None:
    """The replicator with its console beside it; Java, the slowest to start, starts while the rest is imported."""
    from appliance.replicator.spark.spark_jvm import java_machine
    from appliance.replicator.spark.tempdir import scratch
    from appliance.settings.bound import Bound

    def bytes_per_second() -> int:
        return read_settings(parsed.env_file, Role.REPLICATOR, os.environ).engine.max_bytes_per_second

    bound = Bound(settings.engine.max_bytes_per_second, bytes_per_second)
    with scratch(settings.replicator) as directory:
        async with java_machine(settings.engine, settings.replicator, parsed.env_file.resolve(), directory) as machine:
            from appliance.replicator.driver import run_replicator
            from appliance.status.service import console

            async with console(settings, bound):
                await run_replicator(settings, machine, stopping, bound)


async def _spark(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> int:
    from appliance.replicator.spark.standalone import Part, run_part

    part = Part(parsed.part)
    return await run_part(settings.engine, part, parsed.cores, parsed.host, parsed.env_file.resolve(), stopping)


async def _resume(settings: Settings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    """Say what goes on; 1 when nothing was stopped."""
    from appliance.replicator.resume import Choice, adopt_positions, resume

    if parsed.adopt_positions:
        count = await adopt_positions(settings, print, only_plan=parsed.dry_run)
        nothing = "the link is as it was made"
    else:
        choice = Choice(parsed.topic, parsed.partition, parsed.start, parsed.take_over)
        count = await resume(settings, choice, print, only_plan=parsed.dry_run)
        nothing = f"no partition of {parsed.topic} is stopped"
    if not count:
        print(nothing)
    return 0 if count else 1


async def _until_signalled(work: Callable[[asyncio.Event], Awaitable[int | None]]) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return await work(stopping) or 0


if __name__ == "__main__":
    sys.exit(main())
