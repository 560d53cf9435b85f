"""A host of its own for a process and for the Python processes of its Spark, without root: see ``switches.Host``."""

import socket
from typing import Any

from tests.faults.injection import switches

_connect = socket.socket.connect


def patch() -> None:
    """Give this process the name and the address that its environment asks for."""
    host = switches.host()

    def connect(connecting: socket.socket, address: Any) -> None:
        if connecting.family == socket.AF_INET and connecting.getsockname()[1] == 0:
            connecting.bind((host.address, 0))
        _connect(connecting, address)

    socket.gethostname = lambda: host.name
    socket.socket.connect = connect  # type: ignore[method-assign]
