"""A folder of an object store, by Hadoop's file system in Spark's JVM. An object is there whole or not at all."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError

from appliance.errors import StorageFailed

Result = TypeVar("Result")

_ONLY_IF_NEW = "fs.option.create.conditional.overwrite"
"""Hadoop's option of stores that refuse an object, at its end, if there is one of that name already."""


class HadoopFolder:
    """A folder by its URL; the methods are those of ``Store``."""

    def __init__(self, hadoop: tuple[Any, Any], url: str) -> None:
        self._jvm, self._configuration = hadoop
        self._url = url

    def sizes(self) -> Mapping[str, int]:
        """See ``Store``."""

        def listed() -> Mapping[str, int]:
            root = self._path("")
            system, sizes = self._system(), {}
            if not system.exists(root):
                return {}
            below = len(str(system.makeQualified(root).toString())) + 1
            files = system.listFiles(root, True)
            while files.hasNext():
                status = files.next()
                sizes[str(status.getPath().toString())[below:]] = int(status.getLen())
            return sizes

        return self._translated("list", listed)

    def read(self, name: str) -> bytes:
        """See ``Store``."""

        def content() -> bytes:
            stream = self._system().open(self._path(name))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

        return self._translated(f"read {name}", content)

    def create(self, name: str, content: bytes) -> bool:
        """See ``Store``. A store that cannot refuse at the end of a write is asked before it."""
        path, system = self._path(name), self._system()

        def write() -> bool:
            making = system.createFile(path).recursive()
            if system.hasPathCapability(path, _ONLY_IF_NEW):
                making = making.overwrite(True).must(_ONLY_IF_NEW, True)
            else:
                making = making.overwrite(False)
            _write(making.build(), content)
            return True

        try:
            return self._translated(f"create {name}", write)
        except StorageFailed:
            if not self._translated(f"find {name}", lambda: bool(system.exists(path))):
                raise
            return self.read(name) == content

    def replace(self, name: str, content: bytes) -> None:
        """See ``Store``."""
        self._translated(f"write {name}", lambda: _write(self._system().create(self._path(name), True), content))

    def remove(self, name: str) -> None:
        """See ``Store``."""
        self._translated(f"remove {name}", lambda: self._system().delete(self._path(name), False))

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._url}/{name}" if name else self._url)

    def _system(self) -> Any:
        return self._translated("open", lambda: self._path("").getFileSystem(self._configuration))

    def _translated(self, doing: str, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except Py4JJavaError as error:
            words = str(error.java_exception.toString()).splitlines()[0]
            raise StorageFailed(f"AUDIT_PATH={self._url}: cannot {doing}: {words}") from error
        except (Py4JError, OSError) as error:
            raise StorageFailed(f"AUDIT_PATH={self._url}: cannot {doing}: Spark's JVM does not answer") from error


def _write(stream: Any, content: bytes) -> None:
    try:
        stream.write(content)
    except BaseException:
        if hasattr(stream, "abort"):
            stream.abort()
        raise
    stream.close()
