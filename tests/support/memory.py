"""The memory that a piece of work takes at most."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

_STATUS = Path("/proc/self/status")


@contextlib.contextmanager
def at_most(mebibytes: int) -> Iterator[None]:
    """Require that this process never takes so much more memory during the block than before it."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    before = _kibibytes("VmRSS")
    yield
    grown = (_kibibytes("VmHWM") - before) // 1024
    assert grown <= mebibytes, f"{grown} MiB were taken"


def _kibibytes(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", _STATUS.read_text())
    assert found
    return int(found[1])
