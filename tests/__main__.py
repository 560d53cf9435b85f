"""``bin/test [SUITE...] [FILE...] [OPTION...]``: the checks and the tests of a checkout; ``--help`` lists the suites.

Without arguments: style, types, and the tests of tests/unit and tests/real that each submission has to pass. All of
them run, even after a failure; pytest is last, so its summary is the last line. With suites: these only, one after the
other. With a FILE, or with ``-k``: pytest on the chosen tests in any directory, and no other check. All other arguments
are pytest's.

A suite and a FILE run whole. Without them, the tests that are marked ``release`` are left out, as by ``.ci/run``;
``bin/test --release`` and ``.ci/run --release`` run all.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.suites import DEFAULT, DIRECTORIES, EACH_SUBMISSION, SUITES, Suite

CHECKOUT = Path(__file__).parent.parent
CHECKS = (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"], ["mypy", "--config-file", "tests/mypy.ini"])
TAKE_A_VALUE = ("-k", "-m", "-n", "-p", "-c", "-o", "-r", "-W")
"""Options of pytest whose value is a separate argument, and so not a FILE."""

RELEASE = "--release"
"""The argument with which nothing is left out."""

USAGE = f"bin/test [{RELEASE}] [SUITE...] [FILE...] [OPTION OF PYTEST...]"


def steps(arguments: Sequence[str], here: Path) -> list[list[str]]:
    """The modules to run, with their arguments, from the directory ``here``."""
    wanted = [suite for suite in SUITES if suite.flag in arguments]
    others = [argument for argument in arguments if argument not in {RELEASE, *(suite.flag for suite in SUITES)}]
    files = [_absolute(argument, here) for argument in _files(others, here)]
    options = [argument for argument in others if argument not in set(_files(others, here))]
    if files:
        return [["pytest", *options, *files]]
    if wanted:
        return [run(suite, options) for suite in wanted]
    if "-k" in options:
        return [["pytest", *options, *DIRECTORIES]]
    return [*CHECKS, run(DEFAULT, [*(() if RELEASE in arguments else EACH_SUBMISSION), *options])]


def run(suite: Suite, options: Sequence[str] = ()) -> list[str]:
    """The step that runs the tests of a suite."""
    return ["pytest", *suite.options, *options, *suite.directories]


def environment() -> dict[str, str]:
    """The variables of the steps: this process's, except the one by which Python keeps no bytecode.

    Without bytecode, each worker of pytest compiles every file again, and rewrites its assertions.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _files(arguments: Sequence[str], here: Path) -> Iterator[str]:
    """The arguments that name tests: a file, a directory, or one test in a file."""
    for before, argument in zip(("", *arguments), arguments, strict=False):
        path = here / argument.partition("::")[0]
        if before not in TAKE_A_VALUE and path.exists() and path.resolve().is_relative_to(CHECKOUT / "tests"):
            yield argument


def _absolute(argument: str, here: Path) -> str:
    path, colons, test = argument.partition("::")
    return f"{(here / path).resolve()}{colons}{test}"


def help_text() -> str:
    """The suites: a line on each, and the minutes measured on two cores, of all tests and of those in ``.ci/run``."""
    lines = [
        f"  {suite.flag or '(none)':<14}{suite.minutes:>5} min{suite.ci_minutes:>5} in CI  {suite.purpose}"
        for suite in (DEFAULT, *SUITES)
    ]
    return "\n".join((f"usage: {USAGE}", "", str(__doc__).partition("\n\n")[2].strip(), "", "suites:", *lines))


def main(arguments: Sequence[str]) -> int:
    """Run all steps; return the exit code of the first failed one."""
    if {"-h", "--help"} & set(arguments):
        print(help_text())
        return 0
    todo = steps(arguments, Path(os.getcwd()))
    commands = [[sys.executable, "-m", *step] for step in todo]
    outcomes = [subprocess.run(command, cwd=CHECKOUT, env=environment()).returncode for command in commands]
    return next((outcome for outcome in outcomes if outcome), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
