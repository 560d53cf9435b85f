"""TCP options by which the system finds that a connection's peer is gone, as far as it has them (tcp(7))."""

import asyncio
import socket

_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}
_SILENCE = 30.0
"""A peer that is gone is noticed after half a minute, and a firewall sees a flow that is in use."""


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Ask a silent peer whether it is there, and give up one that takes nothing."""
    connection: socket.socket = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    give_up_after(transport, 0)


def give_up_after(transport: asyncio.BaseTransport, throttled: float) -> None:
    """Linux gives up a peer that lives and reads nothing, too: not for so many seconds, as it has announced."""
    if hasattr(socket, "TCP_USER_TIMEOUT") and not transport.is_closing():
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int((_SILENCE + throttled) * 1000))
