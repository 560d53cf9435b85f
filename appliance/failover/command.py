"""``appliance pause``, ``failover`` and ``promote``."""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from appliance.errors import ApplianceError
from appliance.failover.model.report import Report
from appliance.failover.operation import WAIT_SECONDS, Choice, Operation, operation
from appliance.failover.pause import set_paused
from appliance.failover.promotion import failover, promote
from appliance.link.model.copy_states import CopyEvent
from appliance.runtime.background import unless_stopped
from appliance.runtime.command import Command, Run, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings


class Outcome(Protocol):
    """The outcome of such a command."""

    def lines(self) -> Iterable[str]:
        """Say it to the operator."""

    def document(self) -> dict[str, object]:
        """The JSON object."""


Work = Callable[[Operation], Awaitable[Outcome]]


def add_options(command: argparse.ArgumentParser) -> None:
    """Declare the options that all of these commands have."""
    command.add_argument("--topic", default="", metavar="REGEX", help="only these source topics (default: the link)")
    command.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")
    command.add_argument("--json", action="store_true", help="print JSON instead of lines")
    command.add_argument("--yes", action="store_true", help="do not ask")
    command.add_argument("--why", default="", metavar="TEXT", help="the reason, which is kept with the state")


def _promote_options(command: argparse.ArgumentParser) -> None:
    add_options(command)
    command.add_argument(
        "--allow-loss", action="store_true", help="promote though something is behind, or the source takes writes"
    )
    command.add_argument(
        "--wait", type=float, default=WAIT_SECONDS, metavar="SECONDS", help="for the copies (default: %(default)g)"
    )


def choice(parsed: argparse.Namespace) -> Choice:
    """The options as they were given."""
    allow_loss, wait = getattr(parsed, "allow_loss", False), getattr(parsed, "wait", WAIT_SECONDS)
    return Choice(parsed.topic, parsed.why, parsed.dry_run, parsed.yes, allow_loss, wait)


async def perform(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event, work: Work) -> int:
    """Run one of these commands, and print its report.

    Raises:
        ApplianceError: as the command; or it was stopped, and has to be run again.
    """
    async with operation(settings, choice(parsed), _progress) as running:
        report = await unless_stopped(stopping, _coroutine(work, running))
    if report is None:
        raise ApplianceError("stopped: run the same command again to finish it")
    if parsed.json:
        print(json.dumps(report.document(), indent=2))
    else:
        for line in report.lines():
            print(line)
    return 0


async def _coroutine(work: Work, running: Operation) -> Outcome:
    return await work(running)


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def run_of(work: Work) -> Run:
    """The run of a command that does this work."""
    return with_settings(Role.REPLICATOR, lambda settings, parsed, stopping: perform(settings, parsed, stopping, work))


async def _pause(running: Operation) -> Report:
    return await set_paused(running, CopyEvent.PAUSE)


PAUSE = Command(
    "Pauses copying until `appliance resume`. Every lane is fenced first: when the command ends, nothing more is "
    "copied, whichever replicator runs.",
    run_of(_pause),
    add_options,
)

FAILOVER = Command(
    "Promotes the copies when the source is lost: fences every lane, so that no replicator can write to them any "
    "more, finishes the groups if the source answers, and prints for each partition how far it is copied and what is "
    "lost. What nobody knows is unknown, never 0. Killed anywhere, the same command again finishes it.",
    run_of(failover),
    add_options,
)

PROMOTE = Command(
    "Promotes the copies as planned, with nothing lost: waits until nothing is behind, fences every lane, and asks "
    "the source again. If it still takes writes, copying goes on and the command refuses. Stop the producers first.",
    run_of(promote),
    _promote_options,
)
