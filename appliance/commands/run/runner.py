"""A command's plan, the one way in which every plan is carried out, and the options that commands share."""

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from appliance.commands.run.operation import WAIT_SECONDS, Choice, Operation, operation
from appliance.errors import Interrupted
from appliance.link.model.topic_choice import add_topic_options
from appliance.output import say, say_json
from appliance.runtime.background import unless_stopped
from appliance.runtime.command import Run, add_json, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings


class Outcome(Protocol):
    """The outcome of a command."""

    def lines(self) -> Iterable[str]:
        """Print it for the operator."""

    def document(self) -> dict[str, object]:
        """The JSON object."""


Result = TypeVar("Result", bound=Outcome)
Step = Callable[[], Coroutine[Any, Any, Result]]


@dataclass(frozen=True, slots=True)
class Plan(Generic[Result]):
    """The work of a command, before anything is written.

    ``foreseen`` gives the outcome of a run as things are now, or raises the refusal that a run would end by. ``apply``
    may be killed at any write: the same command again makes a new plan, and finishes. ``question`` is what the operator
    has to agree to, after the ``announced`` lines; empty where a run only finishes what was agreed to before.
    """

    foreseen: Step[Result]
    apply: Step[Result]
    question: str = ""
    announced: Iterable[str] = ()


Work = Callable[[Operation], Awaitable[Plan[Result]]]


def constant(result: Result) -> Step[Result]:
    """A step that has nothing to do but to give this result."""

    async def step() -> Result:
        return result

    return step


async def carry_out(operation: Operation, work: Work[Result]) -> Result:
    """Make a plan, and apply it once the operator agrees; with ``--dry-run`` only foresee its outcome."""
    plan = await work(operation)
    if operation.choice.dry_run:
        return await plan.foreseen()
    for line in plan.announced:
        operation.tell(line)
    if plan.question:
        await operation.consent(plan.question)
    return await plan.apply()


def add_options(command: argparse.ArgumentParser, topics: str = "") -> None:
    """Declare the options that these commands share; ``topics`` is the help of the option that chooses topics."""
    add_topic_options(command, topics or "only these source topics; repeatable (default: the link)")
    add_terms(command)


def add_terms(command: argparse.ArgumentParser) -> None:
    """Declare the options that do not choose topics."""
    command.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")
    add_json(command)
    command.add_argument("--yes", action="store_true", help="do not ask")
    command.add_argument("--why", default="", metavar="TEXT", help="the reason, which is kept with the state")


def choice(parsed: argparse.Namespace) -> Choice:
    """The options as they were given."""
    allow_loss, wait = getattr(parsed, "allow_loss", False), getattr(parsed, "wait", WAIT_SECONDS)
    topic, keeps = getattr(parsed, "topic", None) or "", getattr(parsed, "keep_diverged", False)
    letters = getattr(parsed, "delete_dead_letters", False)
    return Choice(topic, parsed.why, parsed.dry_run, parsed.yes, allow_loss, wait, keeps, letters)


async def perform(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event, work: Work[Result]) -> int:
    """Run one of these commands, and print its report."""
    async with operation(settings, choice(parsed), partial(say, error=True)) as running:
        report = await unless_stopped(stopping, carry_out(running, work))
    if report is None:
        raise Interrupted("stopped: run the same command again to finish it")
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
