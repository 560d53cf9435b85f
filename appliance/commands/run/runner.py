"""The run of an operator's command on a link: the options that commands share, and the report at the end."""

import argparse
import asyncio
import json
import re
from collections.abc import Callable
from functools import partial

from appliance.commands.run.operation import WAIT_SECONDS, Choice, operation
from appliance.commands.run.plan import Result, Work, carry_out
from appliance.errors import ApplianceError
from appliance.output import say, say_json
from appliance.runtime.background import unless_stopped
from appliance.runtime.command import Run, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings


def add_options(command: argparse.ArgumentParser, topics: str = "only these source topics (default: the link)") -> None:
    """Declare the options that these commands share; ``topics`` is the help of the option that chooses topics."""
    command.add_argument("--topic", default="", metavar="REGEX", help=topics)
    command.add_argument("--topic-name", dest="topic", type=re.escape, metavar="T", help="only this source topic")
    add_terms(command)


def add_terms(command: argparse.ArgumentParser) -> None:
    """Declare the options that do not choose topics."""
    command.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")
    command.add_argument("--json", action="store_true", help="print JSON instead of lines")
    command.add_argument("--yes", action="store_true", help="do not ask")
    command.add_argument("--why", default="", metavar="TEXT", help="the reason, which is kept with the state")


def choice(parsed: argparse.Namespace) -> Choice:
    """The options as they were given."""
    allow_loss, wait = getattr(parsed, "allow_loss", False), getattr(parsed, "wait", WAIT_SECONDS)
    topic, keeps = getattr(parsed, "topic", ""), getattr(parsed, "keep_diverged", False)
    letters = getattr(parsed, "delete_dead_letters", False)
    return Choice(topic, parsed.why, parsed.dry_run, parsed.yes, allow_loss, wait, keeps, letters)


async def perform(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event, work: Work[Result]) -> int:
    """Run one of these commands, and print its report."""
    async with operation(settings, choice(parsed), partial(say, error=True)) as running:
        report = await unless_stopped(stopping, carry_out(running, work))
    if report is None:
        raise ApplianceError("stopped: run the same command again to finish it")
    if parsed.json:
        say_json(json.dumps(report.document(), indent=2))
    else:
        say(*report.lines())
    return 1 if parsed.dry_run and getattr(report, "refused", ()) else 0  # as the run that it foretells


def run_of(work: Work[Result]) -> Run:
    """The run of a command that does this work."""
    return run_with(lambda _: work)


def run_with(work_of: Callable[[argparse.Namespace], Work[Result]]) -> Run:
    """The run of a command whose work depends on its options."""
    return with_settings(
        Role.REPLICATOR, lambda settings, parsed, stopping: perform(settings, parsed, stopping, work_of(parsed))
    )
