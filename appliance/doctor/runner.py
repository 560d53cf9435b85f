"""The runner of steps, in their order; a step that needs a failed one is not tried, and says so."""

import asyncio
import time
from collections.abc import Callable, Sequence

from appliance.doctor.step import Context, Finding, Result, Step, Verdict, failed
from appliance.errors import ApplianceError

STEP_SECONDS = 60.0
"""Seconds that one step may take; each of its waits has a shorter deadline of its own."""


async def run_steps(
    steps: Sequence[Step[Context]],
    context: Context,
    clock: Callable[[], float] = time.monotonic,
    step_seconds: float = STEP_SECONDS,
) -> tuple[Result, ...]:
    """Run the steps in their order, and return their results."""
    results: dict[str, Result] = {}
    for step in steps:
        if step.applies and not step.applies(context):
            continue
        base = results.get(step.after)
        if base is not None and base.finding.verdict.blocks:
            results[step.name] = Result(step.name, _not_reached(base))
            continue
        began = clock()
        finding = await _run_step(step, context, step_seconds)
        results[step.name] = Result(step.name, finding, clock() - began)
    return tuple(results.values())


def blocked(steps: Sequence[Step[Context]], base: Result) -> tuple[Result, ...]:
    """Results for all steps that always apply, none of them tried, because ``base`` has failed."""
    return tuple(Result(step.name, _not_reached(base)) for step in steps if step.applies is None)


def _not_reached(base: Result) -> Finding:
    """A finding that names the step that failed: ``base``, or the one that ``base`` was not tried for."""
    verdict, detail = base.finding.verdict, base.finding.detail
    return Finding(Verdict.NOT_REACHED, detail if verdict is Verdict.NOT_REACHED else f"behind: {base.name}")


async def _run_step(step: Step[Context], context: Context, seconds: float) -> Finding:
    try:
        async with asyncio.timeout(seconds):
            return await step.run(context)
    except TimeoutError:
        return failed(f"no result within {seconds:g} s", step.remedy)
    except ApplianceError as error:
        return failed(str(error), step.remedy)
