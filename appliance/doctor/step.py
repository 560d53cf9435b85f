"""One step of a diagnosis, and what comes of it; pure."""

import enum
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from appliance.errors import ApplianceError

Context = TypeVar("Context")
"""What is examined; each step may leave there what later ones need."""

SETTINGS = "settings"
"""The step before all others: without settings there is no patient."""


class Verdict(enum.StrEnum):
    """What came of a step."""

    PASSED = "passed"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"
    NOT_REACHED = "not reached"

    @property
    def blocks(self) -> bool:
        """Whether the steps that stand on this one are not tried."""
        return self in (Verdict.FAILED, Verdict.NOT_REACHED)


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict, what was seen in a few words, and what to change where something has to be."""

    verdict: Verdict
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Step(Generic[Context]):
    """One thing to try.

    ``after`` is the step that it stands on, ``remedy`` what to change when it raises an error of ours. ``applies`` says
    whether there is such a thing at all; None: always.
    """

    name: str
    after: str
    run: Callable[[Context], Awaitable[Finding]]
    remedy: str
    applies: Callable[[Context], bool] | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What came of the step ``name``, after so many seconds."""

    name: str
    finding: Finding
    seconds: float = 0.0


Remedies = Sequence[tuple[type[ApplianceError], str]]
"""What to change, by error: that of the first class that it is an instance of."""


def passed(detail: str) -> Finding:
    """All is well."""
    return Finding(Verdict.PASSED, detail)


def warning(detail: str, remedy: str) -> Finding:
    """It works, but somebody should look."""
    return Finding(Verdict.WARNING, detail, remedy)


def failed(detail: str, remedy: str) -> Finding:
    """The path breaks here."""
    return Finding(Verdict.FAILED, detail, remedy)


def skipped(detail: str) -> Finding:
    """There is nothing to try here."""
    return Finding(Verdict.SKIPPED, detail)


def remedy_of(error: ApplianceError, remedies: Remedies) -> str:
    """What to change."""
    return next((remedy for kind, remedy in remedies if isinstance(error, kind)), "see the text of the error")


def some(names: Sequence[str], most: int = 3) -> str:
    """A few of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
