"""Where programs of the benchmarks listen."""

import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.create_server((LOOPBACK, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
