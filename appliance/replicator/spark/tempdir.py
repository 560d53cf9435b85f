"""The directory in which a replicator's process, its Java machine and its Python workers keep their temporary files.

It goes with the process. One that was left behind, by SIGKILL or when the machine lost power, is removed by the next
replicator of that name on this machine: whoever lives holds a lock on its directory, which the kernel frees.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def tempdir(name: str) -> Iterator[Path]:
    """A new directory, and the end of those that dead processes have left."""
    for left in Path(tempfile.gettempdir()).glob(f"{name}-*"):
        with contextlib.suppress(OSError), _locked(left):
            shutil.rmtree(left)
    # It gets the name by which it is found once it is locked.
    made = Path(tempfile.mkdtemp(prefix=f".{name}-"))
    with _locked(made):
        directory = made.rename(made.with_name(made.name.removeprefix(".")))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Holds the directory's lock.

    Raises:
        OSError: somebody else holds it, or it is not our directory.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(f"{directory} is another user's")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
