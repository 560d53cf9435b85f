"""A package index on loopback that records its requests, and packages made for a test."""

import contextlib
import hashlib
import http.server
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping


class PackageIndex:
    """A server of files by project, as in PEP 503; ``asked`` are the paths of all requests."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.url = ""

    def page(self, project: str) -> bytes | None:
        """The links to a project's files; None if there are none."""
        names = [name for name in self.files if name.split("-")[0] == project]
        links = [f'<a href="/files/{name}#sha256={digest(self.files[name])}">{name}</a>' for name in names]
        return "<br>".join(links).encode() if names else None

    def answer(self, path: str) -> bytes | None:
        """The body for a request; None if there is none."""
        self.asked.append(path)
        _, kind, name, *_ = f"{path}//".split("/")
        return self.page(name) if kind == "simple" else self.files.get(name)


@contextlib.contextmanager
def package_index() -> Iterator[PackageIndex]:
    """A new, empty index at its ``url``."""
    index = PackageIndex()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = index.answer(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header(
                "Content-Type", "text/html" if self.path.startswith("/simple/") else "application/octet-stream"
            )
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, *_: object) -> None:
            """Log nothing: the index records requests itself."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index.url = f"http://127.0.0.1:{server.server_port}/simple/"
        thread = threading.Thread(target=server.serve_forever, name="package index")
        thread.start()
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()


def digest(file: bytes) -> str:
    """The file's hash, in the form of a lock."""
    return hashlib.sha256(file).hexdigest()


def wheel(project: str, version: str, files: Mapping[str, str]) -> bytes:
    """A wheel of pure Python."""
    information = f"{project}-{version}.dist-info"
    metadata = {
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, *metadata, f"{information}/RECORD"])
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name, text in {**files, **metadata, f"{information}/RECORD": record}.items():
            packed.writestr(name, text)
    return archive.getvalue()


def source(project: str, version: str, files: Mapping[str, str]) -> bytes:
    """A source distribution."""
    named = {**files, "PKG-INFO": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as packed:
        for name, text in named.items():
            entry = tarfile.TarInfo(f"{project}-{version}/{name}")
            entry.size = len(text.encode())
            packed.addfile(entry, io.BytesIO(text.encode()))
    return archive.getvalue()


def entry(project: str, version: str, *files: bytes) -> str:
    """A lock's lines for a package."""
    hashes = [f"    --hash=sha256:{digest(file)}" for file in files]
    return " \\\n".join([f"{project}=={version}", *hashes]) + "\n"
