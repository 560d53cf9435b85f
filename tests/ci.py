"""``python -m tests.ci [--release]``: the checks and every suite, whichever fails, and a line on each at the end.

Each promise is tried once for every submission, in its cheapest form. With ``--release`` come the tests that are marked
``release`` as well: more versions, more faults of a kind, whatever a cheaper test holds too.

Steps run one after the other, the longest first. What a step prints is kept, and printed whole when the step ends. The
summary has the minutes of each step and those of the processor: the rest of two cores' time was spent waiting.

A machine that others keep busy may starve a test that waits for real processes. What fails outside tests/unit and
tests/simulation is therefore run once more, alone, when all steps have ended; what passes only then is named as flaky,
so that nobody overlooks it. ``bin/test`` never tries twice: who changes something shall see at once what it does.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.__main__ import CHECKOUT, CHECKS, run
from tests.suites import DEFAULT, SUITES, Suite

AT_ONCE = 1
"""Number of steps that run at a time. Two on two cores starve the faults' clusters: their lanes exceed the transaction
timeout of five seconds, and begin anew with more to copy."""

TRIED_AGAIN_MAX = 20
"""Where more tests of a suite than this fail, it is not for the machine."""

EACH_SUBMISSION = ("-m", "not release")
"""pytest's arguments that leave out the tests for a release."""

SLOWEST = ("--durations", "10")

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
    processor_minutes: float
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
        minutes = f"{self.minutes:>6.1f} min{self.processor_minutes:>6.1f} of processor"
        return f"{self.name:<20}{minutes}  {'passed' if self.passed else 'FAILED'}"


def is_tried_again(test: str) -> bool:
    """True if the failure of a test may be the machine's."""
    return not test.startswith(("tests/unit/", "tests/simulation/"))


def tried_again(failed: Sequence[str]) -> tuple[str, ...]:
    """The tests to run once more; none where that could not make a failed suite good."""
    worth_it = len(failed) <= TRIED_AGAIN_MAX and all(map(is_tried_again, failed))
    return tuple(failed) if worth_it else ()


def everything(directory: Path, release: bool) -> list[Step]:
    """The checks, and all suites, the longest first; ``directory`` takes the names of what fails."""
    minutes = {suite: suite.minutes if release else suite.ci_minutes for suite in (DEFAULT, *SUITES)}
    options = SLOWEST if release else (*SLOWEST, *EACH_SUBMISSION)

    def step(suite: Suite) -> Step:
        return Step(suite.flag or "bin/test", run(suite, options), directory / f"failed{suite.flag}")

    suites = sorted((suite for suite in minutes if minutes[suite]), key=lambda suite: -minutes[suite])
    return [*(Step(" ".join(check), check) for check in CHECKS), *map(step, suites)]


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
        process = subprocess.Popen(step.command, cwd=CHECKOUT, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        minutes, processor = (time.monotonic() - began) / 60, (used.ru_utime + used.ru_stime) / 60
        output.seek(0)
        return Outcome(step.name, minutes, processor, process.returncode, step.failed(), printed=output.read())


def repeated(outcome: Outcome, directory: Path) -> Outcome:
    """The outcome of a suite after what failed in it was run once more, where that is worth it."""
    again = tried_again(outcome.failed) if outcome.code == TESTS_FAILED else ()
    if not again:
        return outcome
    failures = directory / f"again-{Path(outcome.name).name}"
    second = perform(Step(f"{outcome.name}, again", ["pytest", *again], failures))
    show(second)
    flaky = tuple(test for test in again if test not in second.failed) if second.code in (0, TESTS_FAILED) else ()
    minutes, processor = outcome.minutes + second.minutes, outcome.processor_minutes + second.processor_minutes
    return replace(outcome, minutes=minutes, processor_minutes=processor, code=second.code, flaky=flaky)


def show(outcome: Outcome) -> None:
    """Print what a step has printed, and how it ended."""
    print(f"\n=== {outcome.name}\n{outcome.printed}=== {outcome.line}\n", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run everything; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog=".ci/run", description="All checks and suites.")
    parser.add_argument("--release", action="store_true", help="with the tests that are marked release")
    release = parser.parse_args(arguments).release
    began = time.monotonic()
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        for outcome in beside_each_other(everything(Path(name), release)):
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
    sys.exit(main(sys.argv[1:]))
