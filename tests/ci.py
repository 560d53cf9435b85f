"""``python -m tests.ci [--release]``: the checks and every suite, even after failures, and a line on each at the end.

Each promise is tested once for every submission, in its cheapest form. ``--release`` adds the tests that are marked
``release``: more versions, more faults of a kind, and other tests that have a cheaper equivalent.

Steps run at once as long as they keep no more than the machine's processors busy, the longest first. Those that only
compute, such as tests/unit, run one after the other at the lowest priority, in the time that the others leave. So does
the build of programs that a suite needs, which is kept on the machine; the suite begins when it has ended. First
the largest suite is collected: on a clean machine, each of its workers would otherwise compile every file. A step's
output is kept, and printed when the step ends. The summary shows the minutes of each step and its processor minutes.

A busy machine may starve a test that waits for real processes. Therefore failed tests outside tests/unit and
tests/simulation run once more, alone, when all steps have ended. Tests that pass only then are reported as flaky.
``bin/test`` never runs a test twice, so that a failure shows at once.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.__main__ import CHECKOUT, CHECKS, environment, run
from tests.suites import DEFAULT, EACH_SUBMISSION, PARTS, PROCESSORS, SUITES

AT_ONCE = 1.1 * PROCESSORS
"""Number of processors that the steps which run at once keep busy at most: what each needs is an average."""

TRIED_AGAIN_MAX = 20
"""Number of failures in a suite above which the machine's load is not the cause."""

SLOWEST = ("--durations", "10")
COLLECTION = ("pytest", "--collect-only", "-qq", *DEFAULT.directories)

TESTS_FAILED = 1
"""pytest's exit code when tests ran and some failed; other ones mean that it could not continue."""


@dataclass(frozen=True, slots=True)
class Step:
    """A Python module with its arguments; pytest writes the names of failed tests to ``failures``.

    ``after`` is the name of a step that has to end before.
    """

    name: str
    module: Sequence[str]
    failures: Path | None = None
    busy: float = PROCESSORS
    fills: bool = False
    after: str = ""

    @property
    def command(self) -> list[str]:
        """Its command line."""
        priority = ["nice", "-n", "19"] if self.fills else []
        options = ["--failures-to", str(self.failures)] if self.failures else []
        return [*priority, sys.executable, "-m", *self.module, *options]

    def fits(self, running: Collection["Step"]) -> bool:
        """True if it may start beside these."""
        if self.fills:
            return not any(step.fills for step in running)
        return self.busy + sum(step.busy for step in running if not step.fills) <= AT_ONCE

    def failed(self) -> tuple[str, ...]:
        """The failed tests of this step."""
        return tuple(self.failures.read_text().splitlines()) if self.failures and self.failures.exists() else ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a step, its duration, and its output."""

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
        """The step's line in the summary."""
        minutes = f"{self.minutes:>6.1f} min{self.processor_minutes:>6.1f} of processor"
        return f"{self.name:<20}{minutes}  {'passed' if self.passed else 'FAILED'}"


def is_tried_again(test: str) -> bool:
    """True if the machine's load may have caused the failure."""
    return not test.startswith(("tests/unit/", "tests/simulation/"))


def tried_again(failed: Sequence[str]) -> tuple[str, ...]:
    """The tests to run once more; none if that could not make the suite pass."""
    worth_it = len(failed) <= TRIED_AGAIN_MAX and all(map(is_tried_again, failed))
    return tuple(failed) if worth_it else ()


def everything(directory: Path, release: bool) -> list[Step]:
    """The checks and all suites, the longest first; the names of failed tests go to ``directory``."""
    suites = PARTS | {suite.flag: suite for suite in SUITES}
    minutes = {name: suite.minutes if release else suite.ci_minutes for name, suite in suites.items()}
    options = SLOWEST if release else (*SLOWEST, *EACH_SUBMISSION)

    def step(name: str) -> Step:
        suite, failures = suites[name], directory / f"failed-{Path(name).name}"
        return Step(name, run(suite, options), failures, suite.busy, suite.fills, suite.builds)

    checks = [Step(" ".join(check), check, fills=True) for check in CHECKS]
    chosen = sorted((name for name in suites if minutes[name]), key=lambda name: -minutes[name])
    builds = [Step(suites[name].builds, [suites[name].builds], fills=True) for name in chosen if suites[name].builds]
    return [Step("collection", COLLECTION), *checks, *builds, *map(step, chosen)]


def outcomes_of(todo: Sequence[Step]) -> Iterator[Outcome]:
    """Run all steps, as many at once as fit; yield each outcome when its step ends."""
    waiting, running = list(todo), dict[Future[Outcome], Step]()
    with ThreadPoolExecutor(len(waiting)) as pool:
        while waiting or running:
            for step in [*waiting]:
                unfinished = {other.name for other in (*waiting, *running.values())}
                if step.after not in unfinished and step.fits(running.values()):
                    waiting.remove(step)
                    running[pool.submit(perform, step)] = step
            for ended in wait(running, return_when=FIRST_COMPLETED).done:
                del running[ended]
                yield ended.result()


def perform(step: Step) -> Outcome:
    """Run a step to its end."""
    print(f"=== {step.name}: begun", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        command, variables = step.command, environment()
        process = subprocess.Popen(command, cwd=CHECKOUT, env=variables, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        minutes, processor = (time.monotonic() - began) / 60, (used.ru_utime + used.ru_stime) / 60
        output.seek(0)
        return Outcome(step.name, minutes, processor, process.returncode, step.failed(), printed=output.read())


def repeated(outcome: Outcome, directory: Path) -> Outcome:
    """The outcome of a suite after its failed tests ran once more, if that can help."""
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
    """Print the output of a step, and its result."""
    print(f"\n=== {outcome.name}\n{outcome.printed}=== {outcome.line}\n", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run everything; return 1 if a step failed."""
    parser = argparse.ArgumentParser(prog=".ci/run", description="All checks and suites.")
    parser.add_argument("--release", action="store_true", help="with the tests that are marked release")
    release = parser.parse_args(arguments).release
    began = time.monotonic()
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        for outcome in outcomes_of(everything(Path(name), release)):
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
