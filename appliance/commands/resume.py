"""``appliance resume``: what is paused goes on, and stopped partitions are tried again, or continue elsewhere."""

import argparse
import asyncio
import json
from collections.abc import Callable
from functools import partial

from appliance.commands.model.position_change import PLACES
from appliance.commands.pause import set_paused
from appliance.commands.positions_adoption import adopt_positions
from appliance.commands.resumption import RETRY, Choice, resume
from appliance.commands.run import operation
from appliance.commands.run.runner import carry_out
from appliance.errors import LinkRefused, SettingsError
from appliance.link.model.copy_states import CopyEvent
from appliance.link.model.topic_choice import add_topic_options, options_of
from appliance.output import say, say_json
from appliance.runtime.command import Command, add_json, until_stopped, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings


def _resume_options(command: argparse.ArgumentParser) -> None:
    add_topic_options(command, "only these source topics, paused or not; repeatable (default: the link)")
    command.add_argument("--adopt-positions", action="store_true", help="accept the positions topic as it is now")
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
    add_json(command)
    command.add_argument("--why", default="", metavar="TEXT", help="the reason, which is kept with the state")


async def _resume(settings: Settings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    """Print each change."""
    if parsed.adopt_positions and parsed.topic:
        raise SettingsError(["--adopt-positions is about the whole link: give no topic"])
    changes: list[str] = []
    tell = changes.append if parsed.json else say
    if parsed.adopt_positions:
        count = await adopt_positions(settings, tell, only_plan=parsed.dry_run)
        nothing = "the link is as it was made"
    else:
        count = await _resume_topics(settings, parsed, tell)
        chosen = options_of(parsed.topic) if parsed.topic else "the link"
        nothing = f"nothing of {chosen} is paused, and no partition of it is stopped"
    if parsed.json:
        document = {"replicator": settings.replicator, "dry_run": parsed.dry_run, "resumed": count, "changes": changes}
        say_json(json.dumps(document, indent=2))
    elif not count:
        say(nothing)
    return 0


async def _resume_topics(settings: Settings, parsed: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Make paused topics active, and retry stopped partitions, unless the operator names a place for these."""
    elsewhere = parsed.partition is not None or parsed.start != RETRY or parsed.take_over
    if elsewhere and not parsed.topic:
        raise SettingsError(["--partition, --from and --take-over need --topic-name"])
    if parsed.removed and (elsewhere or not parsed.topic):
        raise SettingsError(
            ["--removed needs --topic, and says nothing of partitions: see what they wait for afterwards"]
        )
    count = 0 if elsewhere else await _resume_paused(settings, parsed, tell)
    if parsed.removed:
        return count
    choice = Choice(parsed.topic, parsed.partition, parsed.start, parsed.take_over)
    try:
        return count + await resume(settings, choice, tell, only_plan=parsed.dry_run)
    except (SettingsError, LinkRefused) as error:
        if not count or isinstance(error, LinkRefused) == bool(parsed.topic):
            raise
        return count  # a regex is not a topic's name, and a link that never ran has no partitions


async def _resume_paused(settings: Settings, parsed: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Number of paused topics among the chosen ones, or 1 for the link."""
    chosen = operation.Choice(parsed.topic, parsed.why, parsed.dry_run, yes=True)
    async with operation.operation(settings, chosen, tell) as running:
        event = CopyEvent.RESTORE if parsed.removed else CopyEvent.RESUME
        report = await carry_out(running, partial(set_paused, event=event))
    if report.states or report.kept:
        for line in report.lines():
            tell(line)
    return len(report.states)


RESUME = Command(
    "Resumes what is paused, and stopped partitions. Without --from these are tried again at the same offset, after "
    "you have removed the reason. With --from they continue at another offset, and the skipped offsets are written to "
    "the gap ledger; this also adopts a copy without a position. --partition, --from and --take-over need the topic's "
    "name. Each change is printed. The replicator may run meanwhile.",
    until_stopped(with_settings(Role.REPLICATOR, _resume), "stopped: run the same command again to finish it"),
    _resume_options,
)
