"""``spark``, ``resume``, ``reset``, ``failback`` and ``offsets``; ``replicate``, beside its status, is in ``cli``."""

import argparse
import asyncio
import re
from functools import partial

from appliance.errors import LinkRefused, SettingsError
from appliance.failover import offsets_command, operation
from appliance.failover.command import Work, add_options, run_of, run_with
from appliance.failover.pause import set_paused
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import CopyEvent
from appliance.output import say
from appliance.replicator.failback import failback
from appliance.replicator.model.position_change import PLACES, Place
from appliance.replicator.offsets_build import build
from appliance.replicator.reset import reset
from appliance.replicator.resume import RETRY, Choice, adopt_positions, resume
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
    "Runs a Spark master at SPARK_MASTER=spark://host:port, or a worker of it on a host that copies. "
    "Each host needs the same settings except its own addresses, and runs `appliance destination` too.",
    with_settings(Role.REPLICATOR, _spark),
    _spark_options,
)


def _resume_options(command: argparse.ArgumentParser) -> None:
    subject = command.add_mutually_exclusive_group()
    subject.add_argument("--topic", metavar="T", help="the source topic, or a regex of paused ones (default: the link)")
    subject.add_argument("--topic-name", metavar="T", help="this source topic alone, paused or not")
    subject.add_argument("--adopt-positions", action="store_true", help="accept the positions topic as it is now")
    command.add_argument(
        "--partition", type=int, metavar="N", help="this partition, stopped or not (default: all stopped ones)"
    )
    command.add_argument(
        "--from",
        dest="start",
        default="retry",
        metavar="WHERE",
        help=f"{PLACES} (default: where it stopped)",
    )
    command.add_argument("--take-over", action="store_true", help="take over a copy that belongs to another link")
    command.add_argument("--removed", action="store_true", help="copy topics again that `appliance rm-topic` removed")
    command.add_argument("--dry-run", action="store_true", help="print the changes, and make none")
    command.add_argument("--why", default="", metavar="TEXT", help="the reason, which is kept with the state")


async def _resume(settings: Settings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    """Print each change; 1 when nothing was paused or stopped."""
    if parsed.adopt_positions:
        count = await adopt_positions(settings, say, only_plan=parsed.dry_run)
        nothing = "the link is as it was made"
    else:
        count = await _resume_topics(settings, parsed)
        nothing = f"nothing of {parsed.topic or 'the link'} is paused, and no partition of it is stopped"
    if not count:
        say(nothing)
    return 0 if count else 1


async def _resume_topics(settings: Settings, parsed: argparse.Namespace) -> int:
    """Make paused topics active, and retry stopped partitions, unless the operator names a place for these."""
    paused = re.escape(parsed.topic_name) if parsed.topic_name else parsed.topic or ""
    parsed.topic = parsed.topic_name or parsed.topic
    elsewhere = parsed.partition is not None or parsed.start != RETRY or parsed.take_over
    if elsewhere and not parsed.topic:
        raise SettingsError(["--partition, --from and --take-over need --topic"])
    if parsed.removed and (elsewhere or not parsed.topic):
        raise SettingsError(
            ["--removed needs --topic, and says nothing of partitions: see what they wait for afterwards"]
        )
    count = 0 if elsewhere else await _resume_paused(settings, parsed, paused)
    if parsed.removed:
        return count
    choice = Choice(parsed.topic or "", parsed.partition, parsed.start, parsed.take_over)
    try:
        return count + await resume(settings, choice, say, only_plan=parsed.dry_run)
    except (SettingsError, LinkRefused) as error:
        if not count or isinstance(error, LinkRefused) == bool(parsed.topic):
            raise
        return count  # a regex is not a topic's name, and a link that never ran has no partitions


async def _resume_paused(settings: Settings, parsed: argparse.Namespace, topics: str) -> int:
    """Number of paused topics among those of the regex, or 1 for the link."""
    chosen = operation.Choice(topics, parsed.why, parsed.dry_run, yes=True)
    async with operation.operation(settings, chosen, say) as running:
        report = await set_paused(running, CopyEvent.RESTORE if parsed.removed else CopyEvent.RESUME)
    if report.states or report.kept:
        say(*report.lines())
    return len(report.states)


RESUME = Command(
    "Resumes what is paused, and stopped partitions. Without --from these are tried again at the same offset, after "
    "you have removed the reason. With --from they continue at another offset, and the skipped offsets are written to "
    "the gap ledger; this also adopts a copy without a position. Each change is printed. The replicator may run "
    "meanwhile.",
    with_settings(Role.REPLICATOR, _resume),
    _resume_options,
)


def _reset_options(command: argparse.ArgumentParser) -> None:
    add_options(command, "only these source topics (default: all)")
    command.add_argument("--partition", type=int, metavar="N", help="only this partition of each topic")
    command.add_argument("--to", required=True, metavar="WHERE", help=PLACES)


def _reset(parsed: argparse.Namespace) -> Work:
    return partial(reset, place=Place.parse("--to", parsed.to), number=parsed.partition)


RESET = Command(
    "Sets where copying goes on. Forwards, the offsets that are left out go to the gap ledger. Backwards, records are "
    "copied again, behind those that the copy holds. Both are printed by number first. A topic that is promoted, or on "
    "its way, is refused. Killed anywhere, the same command again ends it at the same offsets.",
    run_with(_reset),
    _reset_options,
)


def _failback_options(command: argparse.ArgumentParser) -> None:
    add_options(command)
    command.add_argument(
        "--allow-loss",
        action="store_true",
        help="leave out what producers wrote to the source during the failback and what a copy does not have any more; "
        "let a source topic with LogAppendTime give new times to what is copied back",
    )
    command.add_argument(
        "--keep-diverged",
        action="store_true",
        help="copy what a source held and was never copied into replicator-SOURCE.TOPIC.diverged, beside it",
    )


FAILBACK = Command(
    "Brings the records that promoted copies took back into their source topics, exactly once, and lets the link copy "
    "as before. Copies until nothing is left, so stop the producers at the copies first. What the source held and was "
    "never copied is printed, and stays in the source alone, or is kept in a topic of its own as well. Killed "
    "anywhere, the same command again goes on.",
    run_of(failback),
    _failback_options,
)


def _offsets_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=["translate", "build"], help="translate offsets, or build what is missing")
    offsets_command.add_options(command)
    command.add_argument("--dry-run", action="store_true", help="say what build would read, and build nothing")


async def _offsets(settings: Settings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    if parsed.action == "translate":
        return await offsets_command.translate(settings, parsed)

    def chosen(partition: Partition) -> bool:
        return parsed.topic in (None, partition[0]) and parsed.partition in (None, partition[1])

    return 1 if await build(settings, chosen, say, only_plan=parsed.dry_run) else 0


OFFSETS = Command(
    "translate says at which offset of the copy a consumer continues that has read the source up to an offset, or with "
    "--reverse the other way: exactly, or that it is not known. Only the destination is asked, but for what --group "
    "has committed at the source. Exit code 0 when every answer is exact. build reads both logs of what was copied "
    "before there were maps of offsets, of all topics or of --topic, and writes the maps; exit code 0 when nothing is "
    "left that can be built. The replicator may run meanwhile.",
    with_settings(Role.REPLICATOR, _offsets),
    _offsets_options,
)
