"""Operator's commands, run in the test's own process."""

from collections.abc import Awaitable, Callable
from typing import Any

from appliance.commands.run.operation import Operation
from appliance.commands.run.plan import Plan, carry_out


async def run_command(
    operation: Operation, work: Callable[..., Awaitable[Plan[Any]]], *arguments: Any, **options: Any
) -> Any:
    """Plan a command with these arguments, and carry it out; its outcome."""
    return await carry_out(operation, lambda running: work(running, *arguments, **options))
