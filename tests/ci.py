"""``python -m tests.ci``: the checks, the tests and every suite, whichever fails, and a line on each at the end.

A machine that others keep busy may starve a test that waits for real processes. What fails outside tests/unit and
tests/simulation is therefore run once more, alone; what passes only then is named as flaky, so that nobody overlooks
it. ``bin/test`` never tries twice: who changes something shall see at once what it does.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.__main__ import CHECKOUT, CHECKS, run
from tests.suites import DEFAULT, SUITES, Suite

TRIED_AGAIN_MAX = 10
"""Where more tests than this fail, it is not for the machine."""

TESTS_FAILED = 1
"""pytest's exit code when tests ran, and some failed; others mean that it could not go on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended, and after how long."""

    name: str
    minutes: float
    passed: bool
    flaky: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The summary's line."""
        return f"{self.name:<14}{self.minutes:>6.1f} min  {'passed' if self.passed else 'FAILED'}"


def is_tried_again(test: str) -> bool:
    """Whether the failure of a test may be the machine's."""
    return not test.startswith(("tests/unit/", "tests/simulation/"))


def tried_again(failed: Sequence[str]) -> tuple[str, ...]:
    """The tests to run once more; none where that could not make a failed suite good."""
    worth_it = len(failed) <= TRIED_AGAIN_MAX and all(map(is_tried_again, failed))
    return tuple(failed) if worth_it else ()


def check(step: Sequence[str]) -> Outcome:
    """Style, or types."""
    began = time.monotonic()
    code = _module(step)
    return Outcome(" ".join(step), (time.monotonic() - began) / 60, code == 0)


def tests(suite: Suite, directory: Path) -> Outcome:
    """A suite, and once more what failed in it."""
    began = time.monotonic()
    code, failed = _failed(run(suite), directory / f"failed-{suite.name}")
    again = tried_again(failed) if code == TESTS_FAILED else ()
    flaky: tuple[str, ...] = ()
    if again:
        code, still = _failed(["pytest", *again], directory / f"failed-again-{suite.name}")
        flaky = tuple(test for test in again if test not in still) if code in (0, TESTS_FAILED) else ()
    return Outcome(suite.flag or "bin/test", (time.monotonic() - began) / 60, code == 0, flaky)


def _failed(step: Sequence[str], failures: Path) -> tuple[int, Sequence[str]]:
    """The exit code of pytest, and the tests that failed."""
    code = _module([*step, "--failures-to", str(failures)])
    return code, failures.read_text().splitlines() if failures.exists() else ()


def _module(step: Sequence[str]) -> int:
    print(f"\n=== {' '.join(step)}", flush=True)
    return subprocess.run([sys.executable, "-m", *step], cwd=CHECKOUT).returncode


def main() -> int:
    """Run everything; 1 if anything failed."""
    with tempfile.TemporaryDirectory() as directory:
        outcomes = [check(step) for step in CHECKS]
        outcomes += [tests(suite, Path(directory)) for suite in (DEFAULT, *SUITES)]
    print("\n=== summary")
    for outcome in outcomes:
        print(outcome.line)
    for name in (name for outcome in outcomes for name in outcome.flaky):
        print(f"flaky: {name}")
    print(f"{sum(outcome.minutes for outcome in outcomes):.1f} min in all", flush=True)
    return 0 if all(outcome.passed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
