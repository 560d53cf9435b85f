"""``python -m bench`` as a process."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DEADLINE = 900.0
"""Timeout of a benchmark, in seconds. Its own timeouts are shorter, and name the unfinished work."""


@contextlib.contextmanager
def bench(temporary: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A benchmark with its temporary files in ``directory``."""
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
