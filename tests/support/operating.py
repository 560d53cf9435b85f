"""Operator's commands, run in the test's own process."""

from collections.abc import Awaitable, Callable
from typing import Any

from appliance.commands.run.operation import Operation
from appliance.commands.run.runner import Plan, carry_out


async def run_command(
    operation: Operation, work: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any
) -> Any:
    """Carry out the plan that a command makes with these arguments; its outcome, or that of work without a plan."""
    plan = await work(operation, *arguments, **options)

    async def planned(_: Operation) -> Plan[Any]:
        return plan

    return await carry_out(operation, planned) if isinstance(plan, Plan) else plan
