"""``appliance pause``, ``failover``, ``promote``, ``rm-topic`` and ``link``."""

import argparse
import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Protocol

from appliance.errors import ApplianceError
from appliance.failover.deletion import delete_link
from appliance.failover.operation import WAIT_SECONDS, Choice, Operation, operation
from appliance.failover.pause import set_paused
from appliance.failover.promotion import failover, promote
from appliance.failover.removal import remove_topics
from appliance.link.model.copy_states import CopyEvent
from appliance.output import say, say_json
from appliance.runtime.background import unless_stopped
from appliance.runtime.command import Command, Run, seconds, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings


class Outcome(Protocol):
    """The outcome of such a command."""

    def lines(self) -> Iterable[str]:
        """Print it for the operator."""

    def document(self) -> dict[str, object]:
        """The JSON object."""


_LETTERS = "with them, delete the topics of their dead letters"

Work = Callable[[Operation], Coroutine[Any, Any, Outcome]]


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


def _promote_options(command: argparse.ArgumentParser) -> None:
    add_options(command)
    command.add_argument(
        "--allow-loss", action="store_true", help="promote though something is behind, or the source takes writes"
    )
    command.add_argument(
        "--wait", type=seconds, default=WAIT_SECONDS, metavar="SECONDS", help="for the copies (default: %(default)g)"
    )


def choice(parsed: argparse.Namespace) -> Choice:
    """The options as they were given."""
    allow_loss, wait = getattr(parsed, "allow_loss", False), getattr(parsed, "wait", WAIT_SECONDS)
    topic, keeps = getattr(parsed, "topic", ""), getattr(parsed, "keep_diverged", False)
    letters = getattr(parsed, "delete_dead_letters", False)
    return Choice(topic, parsed.why, parsed.dry_run, parsed.yes, allow_loss, wait, keeps, letters)


async def perform(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event, work: Work) -> int:
    """Run one of these commands, and print its report.

    Raises:
        ApplianceError: as the command; or it was stopped, and must be run again.
    """
    async with operation(settings, choice(parsed), partial(say, error=True)) as running:
        report = await unless_stopped(stopping, work(running))
    if report is None:
        raise ApplianceError("stopped: run the same command again to finish it")
    if parsed.json:
        say_json(json.dumps(report.document(), indent=2))
    else:
        say(*report.lines())
    return 1 if parsed.dry_run and getattr(report, "refused", ()) else 0  # as the run that it foretells


def run_of(work: Work) -> Run:
    """The run of a command that does this work."""
    return run_with(lambda _: work)


def run_with(work_of: Callable[[argparse.Namespace], Work]) -> Run:
    """The run of a command whose work depends on its options."""
    return with_settings(
        Role.REPLICATOR, lambda settings, parsed, stopping: perform(settings, parsed, stopping, work_of(parsed))
    )


PAUSE = Command(
    "Pauses copying until `appliance resume`. Every lane is fenced first: when the command ends, nothing more is "
    "copied, whichever replicator runs.",
    run_of(partial(set_paused, event=CopyEvent.PAUSE)),
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


def _removal_options(command: argparse.ArgumentParser) -> None:
    add_options(command, "the source topics; '.*' is all that there are now")
    command.add_argument("--delete-copy", action="store_true", help="delete the copies, but for those of others")
    command.add_argument("--delete-dead-letters", action="store_true", help=_LETTERS)


RM_TOPIC = Command(
    "Stops copying topics for good, though they match REPLICA_TOPICS_SOURCE_REGEX. Each copy stays as a topic of its "
    "own, which another link may take, unless --delete-copy is given. Their positions and maps of offsets are given "
    "up. `appliance resume --removed --topic` copies them again, from where you then say. Killed anywhere, the same "
    "command again finishes it.",
    run_with(lambda parsed: partial(remove_topics, delete_copies=parsed.delete_copy)),
    _removal_options,
)


def _link_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=["delete"], help="give the link up")
    add_terms(command)
    command.add_argument("--delete-copies", action="store_true", help="delete the copies, but for promoted ones")
    command.add_argument("--delete-dead-letters", action="store_true", help=_LETTERS)


LINK_COMMAND = Command(
    "Gives the link up: deletes its positions, maps of offsets, what a failback has left at the source and, with "
    "MM2_FORMATS, MirrorMaker 2's topics of this link. The copies stay, unless --delete-copies is given, and another "
    "link may take them. Refused while a replicator runs; one that starts later ends, and says why. "
    "`appliance resume --adopt-positions` makes the link anew. Killed anywhere, the same command again finishes it.",
    run_with(lambda parsed: partial(delete_link, delete_copies=parsed.delete_copies)),
    _link_options,
)
