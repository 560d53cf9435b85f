"""Whatever befalls clusters with one order: P, Q, R, S and the engine's invariants hold, and all meet in the end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_HISTORIES = 3_000
_AT_ONCE = 30
_EACH_SUBMISSION = 30
"""They take half a minute; a release plays the others, too."""


@pytest.mark.parametrize(
    "first",
    [
        *range(0, _EACH_SUBMISSION, _AT_ONCE),
        *(pytest.param(first, marks=pytest.mark.release) for first in range(_EACH_SUBMISSION, _HISTORIES, _AT_ONCE)),
    ],
)
def test_the_invariants_hold_in_every_history_of_clusters_with_one_order(first: int) -> None:
    command = [sys.executable, "-m", "tests.simulation.order_history", str(first), str(_AT_ONCE)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}  # a seed that fails here fails by the command, too
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command[1:])}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
