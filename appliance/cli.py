"""The commands of ``bin/appliance``: a table of names. Each folder declares its command in its own ``command.py``."""

import argparse
import asyncio
import contextlib
import dataclasses
import os
import pkgutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.errors import ApplianceError
from appliance.output import say_error, say_tracebacks
from appliance.runtime.command import Command, Run, with_settings
from appliance.runtime.confinement import keep_memory_private
from appliance.settings.env_file import read_settings, usual_file
from appliance.settings.role import Role
from appliance.settings.values import Settings

if TYPE_CHECKING:
    from appliance.spark.spark_jvm import SparkJvm
    from appliance.spark.submitted import SubmittedJvm

_DESCRIPTION = """\
Copies Kafka topics between two networks that cannot reach each other: exactly once, in order, byte for byte.

Each command runs in the foreground. On SIGTERM or Ctrl-C it finishes its open work and ends.
Exit codes: 0 done, 1 failed, 2 bad usage or settings.
"""


def _replicate_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting to pass on to Spark, never a secret; repeatable",
    )


async def _run_replicator(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> None:
    """Run the replicator with its console. Java, the slowest part, starts while the rest is imported."""
    from appliance.settings.engine import Bound
    from appliance.spark.passed_conf import passed_conf, secrets_of
    from appliance.spark.tempdir import tempdir

    def bytes_per_second() -> int:
        return read_settings(parsed.env_file, Role.REPLICATOR, os.environ).engine.max_bytes_per_second

    passed = passed_conf(parsed.conf, frozenset(secrets_of(settings)))
    bound = Bound(settings.engine.max_bytes_per_second, bytes_per_second)
    with tempdir(settings.replicator) as directory:
        async with _java(settings, parsed.env_file.absolute(), directory, passed) as (settings, jvm):
            from appliance.audit.model.progress import AuditProgress
            from appliance.clock import now_ms
            from appliance.driver.composition import Composition
            from appliance.engine.problem_log import ProblemLog
            from appliance.groups.model.newest_groups import NewestGroups
            from appliance.link.client.clusters import destination_cluster, source_cluster
            from appliance.status.service import status_server

            newest, audit, problems = NewestGroups(), AuditProgress(settings.audit.path), ProblemLog(clock=now_ms)
            async with source_cluster(settings) as source, destination_cluster(settings) as destination:
                run = Composition(settings, source, destination, jvm, stopping, bound, newest, audit, problems)
                async with status_server(settings, bound, newest, audit, problems.open):
                    await run.run()


@contextlib.asynccontextmanager
async def _java(
    settings: Settings, env_file: Path, directory: Path, passed: Mapping[str, str]
) -> "AsyncIterator[tuple[Settings, SparkJvm | SubmittedJvm]]":
    """The JVM of Spark's driver, and the settings on its master: spark-submit's, or else a new one."""
    from appliance.spark.configuration import Application
    from appliance.spark.spark_jvm import spark_jvm

    application = Application(settings.engine, settings.replicator, env_file, passed, settings.transform.wanted)
    if all(os.environ.get(name) for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")):
        from appliance.spark.submitted import SubmittedJvm

        submitted = SubmittedJvm(os.environ, directory)
        yield dataclasses.replace(settings, engine=submitted.take(application)), submitted
    else:
        async with spark_jvm(application, directory) as jvm:
            yield settings, jvm


_REPLICATE = Command(
    "Copies every topic that matches REPLICA_TOPICS_SOURCE_REGEX to <topic>.<REPLICA_TOPICS_DEST_SUFFIX>, or to "
    "<SOURCE_CLUSTER_ID>.<topic> with REPLICA_TOPICS_NAMING=prefix. "
    "It may be killed at any time and started anywhere: its positions are stored in the destination cluster.",
    with_settings(Role.REPLICATOR, _run_replicator),
    _replicate_options,
)

COMMANDS: Mapping[str, tuple[str, str | Command]] = {
    "source": ("run the tunnel's end beside the source cluster", "appliance.gateway.command:SOURCE"),
    "destination": (
        "run the tunnel's end beside the destination cluster, with the DNS shim",
        "appliance.gateway.command:DESTINATION",
    ),
    "replicate": ("copy the topics", _REPLICATE),
    "spark": ("run a part of a Spark cluster, to copy on several hosts", "appliance.commands.spark:SPARK"),
    "doctor": ("test the whole path, and name faults with their remedies", "appliance.doctor.command:DOCTOR"),
    "status": ("show progress, lag and stopped partitions", "appliance.status.command:STATUS"),
    "console": ("serve the control center: a page that shows the link", "appliance.console.command:CONSOLE"),
    "pause": ("pause copying", "appliance.commands.pause:PAUSE"),
    "resume": ("resume what is paused, and stopped partitions", "appliance.commands.resume:RESUME"),
    "promote": ("promote the copies as planned, with nothing lost", "appliance.commands.promotion:PROMOTE"),
    "failover": ("promote the copies when the source is lost", "appliance.commands.promotion:FAILOVER"),
    "failback": (
        "bring back what promoted copies took, and copy as before",
        "appliance.commands.failback.command:FAILBACK",
    ),
    "reset": ("set where in the source copying goes on", "appliance.commands.reset:RESET"),
    "lanes": ("show the lanes and their load, and change their number", "appliance.commands.lanes:LANES"),
    "adopt": ("go on in place where MirrorMaker 2 has stopped", "appliance.commands.adoption.adopt:ADOPT"),
    "rm-topic": ("stop copying topics for good", "appliance.commands.removal:RM_TOPIC"),
    "link": ("delete the link", "appliance.commands.deletion:LINK_COMMAND"),
    "configs": ("show the settings that copies would get", "appliance.commands.configs:CONFIGS"),
    "acls": ("show the ACLs that copies would get", "appliance.commands.acls:ACLS"),
    "transform": ("try the SQL in flight on records of the source", "appliance.commands.transform:TRANSFORM"),
    "offsets": ("translate offsets between a source and its copy", "appliance.commands.offsets:OFFSETS"),
    "audit": ("query what was copied when", "appliance.audit.command:AUDIT"),
    "import": ("make links of another program's settings", "appliance.migrate.command:IMPORT"),
    "order": (
        "one order of a topic's records in several clusters, T-global",
        "appliance.commands.order.command:ORDER",
    ),
    "verify": ("read both sides and compare them", "appliance.verify.command:VERIFY"),
    "support-bundle": (
        "write what support needs into one file without secrets",
        "deploy.support.command:SUPPORT_BUNDLE",
    ),
}
"""The commands by name: a line of help, and where the command is, unless here."""


def command(name: str) -> Command:
    """Import a command, and with it no more than it needs: the tunnel's ends import no Spark."""
    where = COMMANDS[name][1]
    try:
        command: Command = pkgutil.resolve_name(where) if isinstance(where, str) else where
    except ModuleNotFoundError as error:
        if error.name != "deploy":
            raise
        sys.exit(f"appliance {name}: it is not in the image: run bin/appliance {name} in the link's folder on the VM")
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    keep_memory_private()
    arguments = sys.argv[1:] if arguments is None else arguments
    name = next((argument for argument in arguments if argument in COMMANDS), "")
    chosen = command(name) if name else None
    parsed = _parser(name, chosen).parse_args(arguments)
    say_tracebacks()
    try:
        with asyncio.Runner(loop_factory=chosen.loop if chosen else None) as runner:
            return runner.run(_until_signalled(chosen.run, parsed)) if chosen else 2
    except ApplianceError as error:
        say_error(f"appliance {parsed.command}", error)
        return error.exit_code


def _parser(chosen: str, command: Command | None) -> argparse.ArgumentParser:
    """The parser of all commands. Only the chosen command has its options."""
    parser = argparse.ArgumentParser(
        prog="appliance", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, _) in COMMANDS.items():
        own = commands.add_parser(name, help=summary)
        own.add_argument(
            "--env-file",
            type=Path,
            default=usual_file(os.environ),
            metavar="PATH",
            help="the settings (default: ./setenv.sh, which may be absent if they are in the process environment); the "
            "process environment takes precedence",
        )
        if command and name == chosen:
            own.description = command.description
            command.add_options(own)
    return parser


async def _until_signalled(run: Run, parsed: argparse.Namespace) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return await run(parsed, stopping) or 0


if __name__ == "__main__":
    sys.exit(main())
