"""Whatever befalls a link, in whatever order: the invariants hold, and once it is over everything is copied."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.runner import first_failure

ROOT = Path(__file__).parents[2]
_HISTORIES = 6_000
_AT_ONCE = 500
_EACH_SUBMISSION = 1_000
"""Each of 500 takes a minute; a release plays the others, too."""


@pytest.mark.parametrize(
    "first",
    [
        *range(0, _EACH_SUBMISSION, _AT_ONCE),
        *(pytest.param(first, marks=pytest.mark.release) for first in range(_EACH_SUBMISSION, _HISTORIES, _AT_ONCE)),
    ],
)
def test_the_invariants_hold_in_every_history(first: int) -> None:
    failed = first_failure(first, _AT_ONCE)
    assert failed is None, f"python -m tests.simulation.runner {failed.seed} 1: {failed.failure}"


def traced(seed: int) -> str:
    command = [sys.executable, "-m", "tests.simulation.runner", str(seed), "1", "--trace"]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.rpartition("1 histories")[0]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.release)])
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    first = traced(seed)
    assert len(first.splitlines()) > 30
    assert traced(seed) == first
