"""``python -m tests [ARGUMENT...]``: the style, the types, and then pytest with the arguments.

All of them run, whichever fails; pytest comes last, so that its closing line is the last of all. With ``--faults`` it
is the fault suite alone, which takes ``--seed N`` and ``--soak MINUTES``.
"""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
CHECKS = (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"])
TWO_FILES_AT_ONCE = ("--numprocesses", "2", "--dist", "loadfile")


def steps(arguments: list[str]) -> list[list[str]]:
    """The modules to run, with their arguments."""
    if "--faults" in arguments:
        return [["pytest", "tests/faults", *(argument for argument in arguments if argument != "--faults")]]
    return [*CHECKS, ["pytest", *TWO_FILES_AT_ONCE, *arguments]]


if __name__ == "__main__":
    outcomes = [subprocess.run([sys.executable, "-m", *step], cwd=CHECKOUT).returncode for step in steps(sys.argv[1:])]
    sys.exit(next((outcome for outcome in outcomes if outcome), 0))
