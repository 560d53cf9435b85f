"""The part of Kubernetes' API by which a Spark driver requests executors; none is ever started."""

import contextlib
import json
import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SPARK_DEFAULTS = """\
spark.kubernetes.container.image example.invalid/appliance:1
spark.kubernetes.executor.enableApiWatcher false
"""
"""The settings for a Kubernetes cluster; Spark polls it, because otherwise it would watch it by a WebSocket."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "KubernetesApi"

    def do_GET(self) -> None:
        self._answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []})

    def do_POST(self) -> None:
        made = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        made["metadata"] |= {"uid": made["metadata"]["name"], "resourceVersion": "1"}
        if made["kind"] == "Pod":
            self.server.pods.put(made)
        self._answer(201, made)

    def do_DELETE(self) -> None:
        self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class KubernetesApi(ThreadingHTTPServer):
    """An API that accepts every pod, and keeps it in ``pods``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pods: queue.Queue[dict[str, Any]] = queue.Queue()

    @property
    def master(self) -> str:
        """The value of SPARK_MASTER."""
        return f"k8s://http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def kubernetes_api() -> Iterator[KubernetesApi]:
    with KubernetesApi() as api:
        thread = threading.Thread(target=api.serve_forever)
        thread.start()
        try:
            yield api
        finally:
            api.shutdown()
            thread.join()
