"""``python -m bench`` as a process."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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


def rows_of(temporary: Path, *arguments: str) -> list[dict[str, Any]]:
    """The rows that a benchmark prints; it ends well, and leaves nothing behind."""
    with bench(temporary, *arguments, "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    assert list(temporary.iterdir()) == []
    rows: list[dict[str, Any]] = json.loads(out)["rows"]
    assert all(row.keys() == {"name", "unit", "ours", "peer_name", "peer", "ratio", "goal"} for row in rows)
    return rows


def named(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The name of each row and of its peer."""
    return [(row["name"], row["peer_name"]) for row in rows]
