"""``python -m bench`` as a process of its own."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DEADLINE = 900.0
"""Seconds that a benchmark may take. Its own timeouts are shorter, and say what was not done in time."""


@contextlib.contextmanager
def bench(temporary: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A benchmark that has its temporary files there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench", *arguments],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(temporary), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
