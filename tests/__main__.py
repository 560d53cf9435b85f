"""``python -m tests [ARGUMENT...]``: the style, the types, and then pytest with the arguments.

All of them run, whichever fails; pytest comes last, so that its closing line is the last of all.
"""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
STEPS = (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"], ["pytest", *sys.argv[1:]])

if __name__ == "__main__":
    outcomes = [subprocess.run([sys.executable, "-m", *step], cwd=CHECKOUT).returncode for step in STEPS]
    sys.exit(next((outcome for outcome in outcomes if outcome), 0))
