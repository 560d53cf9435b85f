"""``python -m tests [ARGUMENT...]``: the style, the types, and then pytest with the arguments.

All of them run, whichever fails; pytest comes last, so that its closing line is the last of all. With ``--faults`` it
is the fault suite alone, which takes ``--seed N`` and ``--soak MINUTES``; with ``--brokers`` copying between brokers of
other versions alone; with ``--networks`` the suite of two networks alone, and with ``--containers`` that of Docker on
two VMs, which both need root.
"""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
CHECKS = (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"])
TWO_FILES_AT_ONCE = ("--numprocesses", "2", "--dist", "loadfile")
SUITES = ("faults", "brokers", "networks", "containers")
"""The directories whose tests run only when asked for."""


def steps(arguments: list[str]) -> list[list[str]]:
    """The modules to run, with their arguments."""
    for suite in SUITES:
        if f"--{suite}" in arguments:
            return [["pytest", f"tests/{suite}", *(argument for argument in arguments if argument != f"--{suite}")]]
    return [*CHECKS, ["pytest", *TWO_FILES_AT_ONCE, *arguments]]


if __name__ == "__main__":
    outcomes = [subprocess.run([sys.executable, "-m", *step], cwd=CHECKOUT).returncode for step in steps(sys.argv[1:])]
    sys.exit(next((outcome for outcome in outcomes if outcome), 0))
