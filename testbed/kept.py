"""Expensive and constant artifacts, kept in the user's cache."""

import fcntl
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from testbed.jars import cache_directory


def kept(name: str, made_from: str, make: Callable[[Path], None]) -> Path:
    """A directory that ``make`` has filled, now or before. It is complete, because it gets its name last.

    Args:
        name: a name for its contents.
        made_from: all inputs that determine its contents.
        make: fills an empty directory.
    """
    directory = cache_directory() / f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}"
    cache_directory().mkdir(parents=True, exist_ok=True)
    with directory.with_suffix(".lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        if not directory.exists():
            partial = directory.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            make(partial)
            partial.rename(directory)
    return directory
