"""Connections whose local end sends endlessly and reads nothing, and the kernel's buffers of a process's
connections."""

import re
import selectors
import socket
import subprocess
import threading
import time

QUIET_SECONDS = 1.0
"""Seconds without a taken byte, after which every connection is full or lost."""

_BLOCK = bytes(64 * 1024)
_QUEUES = re.compile(r"skmem:\(r(\d+),rb\d+,t\d+,tb\d+,f(\d+),w(\d+)")


class Jam(threading.Thread):
    """A server on loopback that jams its connections, and a client that jams given ones.

    ``accepted`` counts the server's connections.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.accepted = 0
        self._taken_at = time.monotonic()
        self._over = False
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self.port = self._listener.getsockname()[1]

    @property
    def quiet(self) -> bool:
        """True if no more bytes are taken."""
        return time.monotonic() - self._taken_at > QUIET_SECONDS

    def add(self, connection: socket.socket) -> None:
        """Jam this connection, too."""
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_WRITE)

    def run(self) -> None:
        """Send in the thread."""
        while not self._over:
            for key, _ in self._selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                self._serve(key.fileobj)
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if connection is self._listener:
                self.add(connection.accept()[0])
                self.accepted += 1
            else:
                connection.send(_BLOCK)
            self._taken_at = time.monotonic()
        except BlockingIOError:
            pass
        except OSError:
            self._selector.unregister(connection)
            connection.close()

    def __enter__(self) -> "Jam":
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over = True
        self.join()


def kernel_memory(pid: int) -> int:
    """The bytes in the buffers of a process's TCP connections, as iproute2 shows them."""
    listed = subprocess.run(["ss", "-tmpnH"], check=True, capture_output=True, text=True).stdout
    lines = [line for line in listed.replace("\n\t", " ").splitlines() if f"pid={pid}," in line]
    return sum(int(size) for line in lines for found in _QUEUES.findall(line) for size in found)
