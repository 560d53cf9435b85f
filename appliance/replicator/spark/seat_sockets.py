"""The sockets of the seats.

In local mode they are a file in the run's own directory, which only its user opens: the network namespace, and with it
loopback, is the gateway's too. Between hosts they speak TLS 1.3 (``seat_tls``). Either way whoever is connected has
shown that it belongs to the run before a byte of it is read.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from appliance.errors import PeerError
from appliance.kafka.client.keepalive import keep_alive
from appliance.replicator.spark.seat_tls import seat_tls
from appliance.runtime.bind import port_refused
from appliance.settings.target import Target
from appliance.settings.values import Side

BACKLOG = 512
"""Connections that may wait to be accepted: all tasks of a slice come at once."""

NOTICE_MAX = 1024 * 1024
"""Bytes of a line that a task says, at most."""

SEAT_MAX = 64 * 1024 * 1024
"""Bytes of a line that the driver says, at most: a seat names every partition of its lanes."""

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def seat_listener(at: Path | Target) -> socket.socket:
    """A listening socket, in the file or on the port, 0 for any.

    Raises:
        SettingsError: the port cannot be had.
    """
    if isinstance(at, Path):
        bound = socket.socket(socket.AF_UNIX)
        with _short(at) as path:
            bound.bind(path)
        bound.listen(BACKLOG)
    else:
        with port_refused("SPARK_DRIVER_PORT", at):
            family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
            bound = socket.create_server((at.host, at.port), family=family, backlog=BACKLOG)
    bound.setblocking(False)
    return bound


async def accepted_seat(connection: socket.socket, token: str) -> Stream:
    """A connection that has been accepted, after TLS.

    Raises:
        OSError: the other end was not given the token.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(NOTICE_MAX, loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    context = None if connection.family == socket.AF_UNIX else seat_tls(token, Side.SOURCE)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=context)
    if context:
        keep_alive(transport)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def dialled_seat(at: Path | Target, token: str) -> Stream:
    """A connection to the driver.

    Raises:
        OSError: there is none, or the other end was not given the token.
    """
    if isinstance(at, Path):
        with _short(at) as path:
            return await asyncio.open_unix_connection(path, limit=SEAT_MAX)
    context = seat_tls(token, Side.DESTINATION)
    reader, writer = await asyncio.open_connection(at.host, at.port, limit=SEAT_MAX, ssl=context)
    keep_alive(writer.transport)
    return reader, writer


async def seat_line(reader: asyncio.StreamReader) -> bytes:
    """The next line, empty at the end.

    Raises:
        PeerError: it is too long.
    """
    try:
        return await reader.readline()
    except ValueError as error:
        raise PeerError(f"a line that is too long: {error}") from error


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """Another name of the same file, since a socket's has at most 107 bytes (unix(7))."""
    descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
