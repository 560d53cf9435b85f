"""The directory in which a replicator's process, its JVM and its Python workers keep their temporary files.

It is removed with the process. After SIGKILL or a power loss, the next replicator of that name on this machine removes
it: a live process holds a lock on its directory, which the kernel frees.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_SHORT = 60
_PLACES = 100


@contextlib.contextmanager
def tempdir(name: str) -> Iterator[Path]:
    """Make a new directory, and remove those of dead processes.

    Its name ends with the lowest number that no live process of that name has: a process that is started again has the
    number of its predecessor.
    """
    for directory in Path(tempfile.gettempdir()).glob(f"{name}-*"):
        with contextlib.suppress(OSError), _locked(directory):
            shutil.rmtree(directory)
    # It gets its final name once it is locked.
    hidden = Path(tempfile.mkdtemp(prefix=f".{name}-"))
    with _locked(hidden):
        directory = _numbered(hidden, name)
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def _numbered(hidden: Path, name: str) -> Path:
    """The directory by its final name; no other one is replaced, since none is empty."""
    (hidden / "lock").touch()
    for number in range(_PLACES):
        with contextlib.suppress(OSError):
            return hidden.rename(hidden.with_name(f"{name}-{number}"))
    return hidden.rename(hidden.with_name(hidden.name.removeprefix(".")))


@contextlib.contextmanager
def short_name(directory: Path) -> Iterator[Path]:
    """A name of the directory that leaves room for those of sockets (unix(7)); another one while the block runs."""
    if len(os.fsencode(directory)) <= _SHORT:
        yield directory
    else:
        for folder in Path("/tmp").glob("spark-*"):
            link = folder / "tmp"
            if link.is_symlink() and not link.exists():  # a killed process has left it, and its directory is removed
                shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="spark-", dir="/tmp") as beside:
            link = Path(beside, "tmp")
            link.symlink_to(directory)
            yield link


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the directory's lock; OSError if another process holds it, or it is not our directory."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(f"{directory} is another user's")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
