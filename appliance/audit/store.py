"""The storage of the audit table: a few operations on named files, each of which is done whole or not at all.

They wait, so that ``in_thread`` does them.
"""

import asyncio
import contextlib
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from appliance.audit.hadoop import HadoopFolder
from appliance.clock import epoch_seconds
from appliance.errors import StorageFailed

Result = TypeVar("Result")

_TEMPORARY = ".writing-"

_LEFT = 86_400.0
"""Age from which a file with that beginning was left by a kill, in seconds."""


class Store(Protocol):
    """Named files below the table's folder. Each method may wait for long, and raises StorageFailed."""

    def sizes(self) -> Mapping[str, int]:
        """The sizes of all files by name; none if there is no folder yet."""

    def read(self, name: str) -> bytes:
        """The content of a file."""

    def create(self, name: str, content: bytes) -> bool:
        """Make a file with this content; False if it exists already, with any content."""

    def replace(self, name: str, content: bytes) -> None:
        """Make a file with this content, or replace its content whole."""

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""


class Folder:
    """A folder of this host. A file that is being written has another name until it is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def sizes(self) -> Mapping[str, int]:
        """See ``Store``."""
        sizes = {}
        with self._translated("list"):
            for directory, _, names in os.walk(self.path, onerror=_unless_missing):
                for name in names:
                    path = Path(directory, name)
                    if not name.startswith("."):
                        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                            sizes[path.relative_to(self.path).as_posix()] = path.stat().st_size
        return sizes

    def read(self, name: str) -> bytes:
        """See ``Store``."""
        with self._translated(f"read {name}"):
            return (self.path / name).read_bytes()

    def create(self, name: str, content: bytes) -> bool:
        """See ``Store``."""
        with self._translated(f"create {name}"), self._complete(name, content) as temporary:
            try:
                os.link(temporary, self.path / name)
            except FileExistsError:
                return False
            _sync((self.path / name).parent)
            return True

    def replace(self, name: str, content: bytes) -> None:
        """See ``Store``."""
        with self._translated(f"write {name}"), self._complete(name, content) as temporary:
            os.replace(temporary, self.path / name)
            _sync((self.path / name).parent)

    def remove(self, name: str) -> None:
        """See ``Store``."""
        with self._translated(f"remove {name}"):
            (self.path / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it holds other files
                (self.path / name).parent.rmdir()

    @contextlib.contextmanager
    def _complete(self, name: str, content: bytes) -> Iterator[Path]:
        """A new file with the content, on the disk, which is removed at the end under this name."""
        folder = (self.path / name).parent
        folder.mkdir(parents=True, exist_ok=True)
        _remove_left(folder)
        temporary = folder / f"{_TEMPORARY}{uuid.uuid4().hex}"  # in containers, all writers have one process id
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageFailed(f"AUDIT_PATH={self.path}: cannot {doing}: {error.strerror or error}") from error


def _remove_left(folder: Path) -> None:
    """Remove what killed writers have left."""
    for each in folder.glob(f"{_TEMPORARY}*"):
        with contextlib.suppress(FileNotFoundError):
            if each.stat().st_mtime < epoch_seconds() - _LEFT:
                each.unlink()


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store_of(path: str, hadoop: tuple[Any, Any]) -> Store:
    """The storage at a path or URL; ``hadoop`` are Java's classes and Hadoop's configuration."""
    return HadoopFolder(hadoop, path) if "://" in path else Folder(Path(path))


async def in_thread(work: Callable[[], Result]) -> Result:
    """Do the work in a thread of its own. A store that hangs delays neither the replicator's end nor its other work."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def settle(set_it: Callable[[], None]) -> None:
        if not done.done():
            set_it()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            failure = error
            tell = lambda: done.set_exception(failure)  # noqa: E731
        else:
            tell = lambda: done.set_result(result)  # noqa: E731
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, tell)

    threading.Thread(target=run, name="audit", daemon=True).start()
    return await done
