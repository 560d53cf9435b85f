"""What Linux tells of a TCP connection's buffers; nothing on other systems."""

import socket
import struct
import sys

_SO_MEMINFO = 55
_MEMINFO = struct.Struct("=9I")
_RECEIVED, _FORWARD, _TO_SEND = 0, 4, 5
"""Places of what was received, of what is reserved, and of what is to be sent and acknowledged (linux/sock_diag.h)."""

_MOVED = struct.Struct("=2Q")
_MOVED_AT = 120
"""Where bytes acknowledged and bytes received are in ``struct tcp_info`` (linux/tcp.h)."""

_ON_LINUX = sys.platform == "linux"


def memory_of(connection: socket.socket) -> int:
    """The bytes of memory that its buffers take."""
    found = _option(connection, socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
    if len(found) < _MEMINFO.size:
        return 0
    sizes: tuple[int, ...] = _MEMINFO.unpack(found)
    return sizes[_RECEIVED] + sizes[_FORWARD] + sizes[_TO_SEND]


def moved_by(connection: socket.socket) -> int:
    """The bytes that the peer has acknowledged or sent since the connection began."""
    found = _option(connection, socket.IPPROTO_TCP, getattr(socket, "TCP_INFO", 0), _MOVED_AT + _MOVED.size)
    return sum(_MOVED.unpack_from(found, _MOVED_AT)) if len(found) >= _MOVED_AT + _MOVED.size else 0


def _option(connection: socket.socket, level: int, option: int, size: int) -> bytes:
    try:
        return connection.getsockopt(level, option, size) if _ON_LINUX else b""
    except OSError:
        return b""  # closed meanwhile
