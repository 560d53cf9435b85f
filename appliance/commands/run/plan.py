"""A command's plan, and the one way in which every plan is carried out."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from appliance.commands.run.operation import Operation


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
