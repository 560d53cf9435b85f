"""Where programs of the benchmarks and of the tests listen."""

import os
import socket
from ipaddress import IPv4Address

LOOPBACK = "127.0.0.1"
OWN_ADDRESS = str(IPv4Address("127.192.0.0") + os.getpid())
"""An address of loopback that is this process's alone.

A port that is free there stays so until whoever it is for listens: no other process asks for a port of this address,
though one that listens on all addresses may get it, and no outgoing connection takes one: those come from LOOPBACK.
"""


def free_port(address: str = LOOPBACK) -> int:
    """A port that nobody listens on now."""
    with socket.create_server((address, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
