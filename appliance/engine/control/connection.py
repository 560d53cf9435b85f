"""The sockets of the control connections, at both ends.

In local mode they use a file in the run's own directory, which only its user can open: the gateway shares the network
namespace, and with it loopback. Between hosts they speak TLS 1.3, with both ends' certificates derived from the run's
token; it reaches the tasks through Spark, which encrypts its own connections, and never crosses this one. Either way a
peer has shown that it belongs to the run before a byte of it is read.
"""

import asyncio
import functools
import hashlib
import socket
import ssl
from pathlib import Path

from appliance.errors import PeerError
from appliance.kafka.client.silence import keep_alive
from appliance.runtime.bind import port_refused, short_path
from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tls.certificates import make_credentials
from appliance.tls.identity import tls_context

BACKLOG = 512
"""Listen backlog: all tasks of a job connect at once."""

REPORT_MAX = 1024 * 1024
"""Longest line of a task, in bytes."""

ASSIGNMENT_MAX = 64 * 1024 * 1024
"""Longest line of the driver, in bytes: an assignment names every partition of its lanes."""

DIAL_SECONDS = 20.0
"""Timeout of a connection, in seconds."""

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def listening_socket(at: Path | Target, subject: str = "SPARK_DRIVER_PORT") -> socket.socket:
    """A listening socket, in the file or on the port, 0 for any; ``subject`` is what asks for it.

    Raises:
        SettingsError: the port is not available.
    """
    if isinstance(at, Path):
        bound = socket.socket(socket.AF_UNIX)
        with short_path(at) as path:
            bound.bind(path)
        bound.listen(BACKLOG)
    else:
        with port_refused(subject, at):
            family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
            bound = socket.create_server((at.host, at.port), family=family, backlog=BACKLOG)
    bound.setblocking(False)
    return bound


async def accepted(connection: socket.socket, token: str) -> Stream:
    """An accepted connection, after TLS.

    Raises:
        OSError: the other end does not know the token.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(REPORT_MAX, loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    context = None if connection.family == socket.AF_UNIX else control_tls(token, Side.SOURCE)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=context)
    if context:
        keep_alive(transport)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def dialled(at: Path | Target, token: str) -> Stream:
    """A connection to a listener: the driver's, or that of a task's SQL.

    Raises:
        OSError: there is none, or the other end does not know the token.
    """
    if isinstance(at, Path):
        with short_path(at) as path:
            return await asyncio.open_unix_connection(path, limit=ASSIGNMENT_MAX)
    context = control_tls(token, Side.DESTINATION)
    reader, writer = await asyncio.open_connection(at.host, at.port, limit=ASSIGNMENT_MAX, ssl=context)
    keep_alive(writer.transport)
    return reader, writer


async def read_line(reader: asyncio.StreamReader) -> bytes:
    """The next line, empty at the end."""
    try:
        return await reader.readline()
    except ValueError as error:
        raise PeerError(f"a line that is too long: {error}") from error


@functools.cache
def control_tls(token: str, side: Side) -> ssl.SSLContext:
    """One end's TLS context; the end that listens is the source.

    The key derivation is fast, because a random token cannot be guessed.
    """
    protocol = ssl.PROTOCOL_TLS_SERVER if side is Side.SOURCE else ssl.PROTOCOL_TLS_CLIENT
    context = tls_context(make_credentials(hashlib.sha256(token.encode()).digest(), "control", side), protocol)
    # As cheap as X25519, and every Python can set it alone: a stranger's hello cannot ask for an expensive one
    # (identity).
    context.set_ecdh_curve("prime256v1")
    return context
