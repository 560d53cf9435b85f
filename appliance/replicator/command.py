"""``appliance spark`` and ``appliance resume``; ``replicate``, which has the console beside it, is in ``cli``."""

import argparse
import asyncio

from appliance.replicator.resume import Choice, adopt_positions, resume
from appliance.replicator.spark.standalone import Part, run_part
from appliance.runtime.command import Command, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings


def _spark_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("part", choices=["master", "worker"], help="which part of the cluster this process is")
    command.add_argument("--cores", type=int, metavar="N", help="how many tasks a worker takes at once (default: all)")
    command.add_argument("--host", metavar="ADDRESS", help="at which a worker is reached (default: by SPARK_MASTER)")


async def _spark(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> int:
    part = Part(parsed.part)
    return await run_part(settings.engine, part, parsed.cores, parsed.host, parsed.env_file.resolve(), stopping)


SPARK = Command(
    "Runs the master that SPARK_MASTER=spark://host:port names, or a worker of it on a host that is to copy. "
    "Such a host has the same settings, but for its own addresses, and `appliance destination` runs there too.",
    with_settings(Role.REPLICATOR, _spark),
    _spark_options,
)


def _resume_options(command: argparse.ArgumentParser) -> None:
    subject = command.add_mutually_exclusive_group(required=True)
    subject.add_argument("--topic", metavar="T", help="the source topic")
    subject.add_argument("--adopt-positions", action="store_true", help="go on with the positions topic as it is now")
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


async def _resume(settings: Settings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    """Print each change; 1 when nothing was stopped."""
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


RESUME = Command(
    "Without --from they are tried again where they stopped, once the reason is gone. With --from they go on "
    "elsewhere, and what is left out is written to the gap ledger; a copy that no position accounts for is adopted "
    "so. Each change is told before it is made. No replicator has to be stopped or started.",
    with_settings(Role.REPLICATOR, _resume),
    _resume_options,
)
