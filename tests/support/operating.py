"""Operator's commands, run in the test's own process."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from appliance.commands.model.removal_report import RemovalReport
from appliance.commands.model.report import Report
from appliance.commands.pause import set_paused
from appliance.commands.promotion import failover, promote
from appliance.commands.removal import remove_topics
from appliance.commands.run.operation import Choice, Operation, operation
from appliance.commands.run.runner import Plan, carry_out
from appliance.link.model.copy_states import CopyEvent, CopyState, effective
from tests.support.engine import Pair

YES = Choice(yes=True)

NOWHERE = "127.0.0.1:1"
"""Where no broker listens: a cluster that is dead."""


class Killed(Exception):
    """Stands for a kill -9."""


async def killed(*_: object) -> None:
    """Stand for a step of a command before which it is killed."""
    raise Killed


def unheard(_: str) -> None:
    """Ignore a line of output."""


async def run_command(
    operation: Operation, work: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any
) -> Any:
    """Carry out the plan that a command makes with these arguments; its outcome, or that of work without a plan."""
    plan = await work(operation, *arguments, **options)

    async def planned(_: Operation) -> Plan[Any]:
        return plan

    return await carry_out(operation, planned) if isinstance(plan, Plan) else plan


@contextlib.asynccontextmanager
async def command(pair: Pair, choice: Choice = YES, **variables: str) -> AsyncIterator[Operation]:
    """A command's run on a link."""
    async with operation(pair.settings(**variables), choice, unheard) as running:
        yield running


async def failed_over(pair: Pair, choice: Choice = YES, **variables: str) -> Report:
    """The outcome of a failover."""
    async with command(pair, choice, **variables) as running:
        return await run_command(running, failover)  # type: ignore[no-any-return]


async def promoted(pair: Pair, choice: Choice = YES, **variables: str) -> Report:
    """The outcome of a promotion."""
    async with command(pair, choice, **variables) as running:
        return await run_command(running, promote)  # type: ignore[no-any-return]


async def paused(pair: Pair, topic: str = "", event: CopyEvent = CopyEvent.PAUSE) -> Report:
    """The outcome of a pause of the link or of a topic, or of the end of one."""
    async with command(pair, replace(YES, topic=topic)) as running:
        return await run_command(running, set_paused, event)  # type: ignore[no-any-return]


async def restored(pair: Pair, topic: str) -> None:
    """Copy a removed topic again."""
    await paused(pair, topic, CopyEvent.RESTORE)


async def removed(pair: Pair, topic: str, *, delete_copies: bool = False, letters: bool = False) -> RemovalReport:
    """The outcome of a topic's removal; with ``letters`` its dead letters are deleted too."""
    async with command(pair, Choice(topic=topic, yes=True, deletes_dead_letters=letters)) as running:
        return await run_command(running, remove_topics, delete_copies=delete_copies)  # type: ignore[no-any-return]


async def change_states(pair: Pair, *events: CopyEvent, topic: str = "") -> None:
    """Change the states of the link or of a topic, as a command of another operator does."""
    async with command(pair) as other:
        await other.lanes.read()
        for event in events:
            await other.lanes.change([topic] if topic else None, event)


async def everywhere(pair: Pair, topic: str) -> set[CopyState]:
    """The states of a topic's copy by the lanes' checkpoints."""
    async with command(pair) as running:
        await running.lanes.read()
        return {effective(checkpoint.states, topic) for checkpoint in running.lanes.checkpoints}
