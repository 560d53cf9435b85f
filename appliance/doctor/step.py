"""One step of a diagnosis, and its result."""

import asyncio
import enum
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from appliance.clock import monotonic
from appliance.errors import ApplianceError

Context = TypeVar("Context")
"""The state that the steps of a VM share: each may leave there what later ones need."""

SETTINGS = "settings"
"""The step before all others: without settings nothing can be checked."""


class Verdict(enum.StrEnum):
    """The outcome of a step."""

    PASSED = "passed"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"
    NOT_REACHED = "not reached"

    @property
    def blocks(self) -> bool:
        """True when the steps that need this one are not tried."""
        return self in (Verdict.FAILED, Verdict.NOT_REACHED)


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict, its detail in a few words, and the remedy, if something has to change."""

    verdict: Verdict
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Step(Generic[Context]):
    """A check: its name, its dependency and its remedy.

    ``after`` is the step that it needs, ``remedy`` what to change when it raises an error of ours, as any may.
    ``applies`` says whether the context has such a thing at all; None: always.
    """

    name: str
    after: str
    run: Callable[[Context], Awaitable[Finding]]
    remedy: str
    applies: Callable[[Context], bool] | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The finding of the step ``name``, and the seconds it took."""

    name: str
    finding: Finding
    seconds: float = 0.0


Remedies = Sequence[tuple[type[ApplianceError], str]]
"""Remedies by class of error; the first class that fits counts."""


def passed(detail: str) -> Finding:
    """A finding without fault."""
    return Finding(Verdict.PASSED, detail)


def warning(detail: str, remedy: str) -> Finding:
    """A finding that works, but needs attention."""
    return Finding(Verdict.WARNING, detail, remedy)


def failed(detail: str, remedy: str) -> Finding:
    """A finding of a failed step."""
    return Finding(Verdict.FAILED, detail, remedy)


def skipped(detail: str) -> Finding:
    """A finding of a step that does not apply."""
    return Finding(Verdict.SKIPPED, detail)


def together(findings: Mapping[str, Finding]) -> Finding:
    """The finding of machines of which one suffices, by their names: it fails if all do."""
    first, *others = findings.values()
    verdict = first.verdict if all(each.verdict is first.verdict for each in others) else Verdict.WARNING
    detail = "; ".join(f"{name}: {found.detail}" for name, found in findings.items())
    remedies = dict.fromkeys(each.remedy for each in findings.values() if each.remedy)
    return Finding(verdict, detail, "; ".join(remedies)) if others else first


def remedy_of(error: ApplianceError, remedies: Remedies) -> str:
    """The remedy of an error."""
    return next((remedy for kind, remedy in remedies if isinstance(error, kind)), "see the text of the error")


STEP_SECONDS = 60.0
"""Seconds that one step may take; each of its waits has a shorter deadline of its own."""


async def run_steps(
    steps: Sequence[Step[Context]],
    context: Context,
    clock: Callable[[], float] = monotonic,
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
