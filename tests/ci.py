"""``python -m tests.ci``: the checks, the tests and every suite, whichever fails, and a line on each at the end.

Steps run one after the other, the longest first. What a step prints is kept, and printed whole when the step ends.

A machine that others keep busy may starve a test that waits for real processes. What fails outside tests/unit and
tests/simulation is therefore run once more, alone, when all steps have ended; what passes only then is named as flaky,
so that nobody overlooks it. ``bin/test`` never tries twice: who changes something shall see at once what it does.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.__main__ import CHECKOUT, CHECKS, run
from tests.suites import DEFAULT, SUITES

AT_ONCE = 1
"""Number of steps that run at a time. Two on two cores starve the faults' clusters: their lanes exceed the transaction
timeout of five seconds, and begin anew with more to copy."""

TRIED_AGAIN_MAX = 20
"""Where more tests of a suite than this fail, it is not for the machine."""

TESTS_FAILED = 1
"""pytest's exit code when tests ran, and some failed; others mean that it could not go on."""


@dataclass(frozen=True, slots=True)
class Step:
    """A Python module with its arguments; pytest leaves the names of the tests that fail in ``failures``."""

    name: str
    module: Sequence[str]
    failures: Path | None = None

    @property
    def command(self) -> list[str]:
        """Its command line."""
        options = ["--failures-to", str(self.failures)] if self.failures else []
        return [sys.executable, "-m", *self.module, *options]

    def failed(self) -> tuple[str, ...]:
        """The tests that have failed in it."""
        return tuple(self.failures.read_text().splitlines()) if self.failures and self.failures.exists() else ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a step, its duration, and what it printed."""

    name: str
    minutes: float
    code: int
    failed: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    printed: str = field(default="", repr=False)

    @property
    def passed(self) -> bool:
        """True if nothing failed, or nothing failed twice."""
        return self.code == 0

    @property
    def line(self) -> str:
        """The summary's line."""
        return f"{self.name:<20}{self.minutes:>6.1f} min  {'passed' if self.passed else 'FAILED'}"


def is_tried_again(test: str) -> bool:
    """True if the failure of a test may be the machine's."""
    return not test.startswith(("tests/unit/", "tests/simulation/"))


def tried_again(failed: Sequence[str]) -> tuple[str, ...]:
    """The tests to run once more; none where that could not make a failed suite good."""
    worth_it = len(failed) <= TRIED_AGAIN_MAX and all(map(is_tried_again, failed))
    return tuple(failed) if worth_it else ()


def everything(directory: Path) -> list[Step]:
    """The checks, and all suites, the longest first; ``directory`` takes the names of what fails."""
    suites = sorted((DEFAULT, *SUITES), key=lambda suite: -suite.minutes)
    return [
        *(Step(" ".join(check), check) for check in CHECKS),
        *(Step(suite.flag or "bin/test", run(suite), directory / f"failed{suite.flag}") for suite in suites),
    ]


def beside_each_other(todo: Sequence[Step], at_once: int = AT_ONCE) -> Iterator[Outcome]:
    """The outcomes of steps that run so many at a time, begun in their order, as they end."""
    with ThreadPoolExecutor(at_once) as pool:
        running = [pool.submit(perform, step) for step in todo]
        try:
            for ended in as_completed(running):
                yield ended.result()
        finally:
            pool.shutdown(cancel_futures=True)


def perform(step: Step) -> Outcome:
    """Run a step to its end."""
    print(f"=== {step.name}: begun", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        code = subprocess.run(step.command, cwd=CHECKOUT, stdout=output, stderr=subprocess.STDOUT).returncode
        output.seek(0)
        return Outcome(step.name, (time.monotonic() - began) / 60, code, step.failed(), printed=output.read())


def repeated(outcome: Outcome, directory: Path) -> Outcome:
    """The outcome of a suite after what failed in it was run once more, where that is worth it."""
    again = tried_again(outcome.failed) if outcome.code == TESTS_FAILED else ()
    if not again:
        return outcome
    failures = directory / f"again-{Path(outcome.name).name}"
    second = perform(Step(f"{outcome.name}, again", ["pytest", *again], failures))
    show(second)
    flaky = tuple(test for test in again if test not in second.failed) if second.code in (0, TESTS_FAILED) else ()
    return replace(outcome, minutes=outcome.minutes + second.minutes, code=second.code, flaky=flaky)


def show(outcome: Outcome) -> None:
    """Print what a step has printed, and how it ended."""
    print(f"\n=== {outcome.name}\n{outcome.printed}=== {outcome.line}\n", flush=True)


def main() -> int:
    """Run everything; 1 if anything failed."""
    began = time.monotonic()
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        for outcome in beside_each_other(everything(Path(name))):
            show(outcome)
            outcomes.append(outcome)
        outcomes = [repeated(outcome, Path(name)) for outcome in outcomes]
    print("\n=== summary")
    for outcome in outcomes:
        print(outcome.line)
    for test in (test for outcome in outcomes for test in outcome.flaky):
        print(f"flaky: {test}")
    print(f"{(time.monotonic() - began) / 60:.1f} min in all", flush=True)
    return 0 if all(outcome.passed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
