"""The memory that connections hold: bytes that wait in this process to be sent, and the kernel's buffers.

A *jammed* connection, whose receiver does not read, keeps one read here for each direction. Reads are large, for speed,
and there may be thousands of jammed connections. So the size of a read depends on the free part of one budget. It is
the dynamic threshold of switches that share one memory (Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2),
1998): a late connection gets little of a full memory, and none needs to know how many share it.

Only Linux shows the size of a connection's buffers; on other systems it counts as 0.
"""

import socket
import struct
import sys

_SO_MEMINFO = 55
_MEMINFO = struct.Struct("=9I")
_RECEIVED, _FORWARD, _TO_SEND = 0, 4, 5
"""Indexes of the received, the reserved, and the unsent or unacknowledged bytes (linux/sock_diag.h)."""

_MOVED = struct.Struct("=2Q")
_MOVED_AT = 120
"""Offset of the bytes acknowledged and received in ``struct tcp_info`` (linux/tcp.h)."""

_ON_LINUX = sys.platform == "linux"

WAITING_MAX = 64 * 2**20
"""Bytes that may wait before reads have their smallest size."""

READ_SIZE_MAX = 512 * 1024
"""Bytes that one read takes at most: a quarter of that costs a sixth more processor time, more buys little and makes
the other connections wait."""

READ_SIZE_MIN = 16 * 1024
"""Bytes that one read takes at least: one record of TLS."""


class ReadBudget:
    """The size of reads by the bytes that are ``waiting`` in this process."""

    def __init__(self) -> None:
        self.waiting = 0

    @property
    def read_size(self) -> int:
        """The size of the next read, in bytes."""
        return min(READ_SIZE_MAX, max(READ_SIZE_MIN, (WAITING_MAX - self.waiting) // 2))


READ_BUDGET = ReadBudget()
"""The memory of this process, which has one event loop."""


def memory_of(connection: socket.socket) -> int:
    """The bytes of memory that its buffers take."""
    option = _option(connection, socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
    if len(option) < _MEMINFO.size:
        return 0
    sizes: tuple[int, ...] = _MEMINFO.unpack(option)
    return sizes[_RECEIVED] + sizes[_FORWARD] + sizes[_TO_SEND]


def moved_by(connection: socket.socket) -> int:
    """The bytes that the peer has acknowledged or sent since the connection began."""
    info = _option(connection, socket.IPPROTO_TCP, getattr(socket, "TCP_INFO", 0), _MOVED_AT + _MOVED.size)
    return sum(_MOVED.unpack_from(info, _MOVED_AT)) if len(info) >= _MOVED_AT + _MOVED.size else 0


def _option(connection: socket.socket, level: int, option: int, size: int) -> bytes:
    try:
        return connection.getsockopt(level, option, size) if _ON_LINUX else b""
    except OSError:
        return b""  # closed meanwhile
