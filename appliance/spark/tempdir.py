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
    """Make a new directory, and remove those of dead processes."""
    for directory in Path(tempfile.gettempdir()).glob(f"{name}-*"):
        with contextlib.suppress(OSError), _locked(directory):
            shutil.rmtree(directory)
    # It gets its final name once it is locked.
    hidden = Path(tempfile.mkdtemp(prefix=f".{name}-"))
    with _locked(hidden):
        directory = hidden.rename(hidden.with_name(hidden.name.removeprefix(".")))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def place(name: str) -> Iterator[int]:
    """The lowest number that no other live process of that name has on this machine, while the block runs.

    A process that is started again has the number of its predecessor.
    """
    with contextlib.ExitStack() as stack:
        for number in range(_PLACES):
            file = Path(tempfile.gettempdir(), f".{name}.place-{number}")
            with contextlib.suppress(OSError):
                descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield number
                return
        yield os.getpid()


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
