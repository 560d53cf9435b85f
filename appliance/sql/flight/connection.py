"""Messages in asyncio's streams, and over the connections of Spark's workers, which wait for one thing at a time."""

import asyncio
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Self

from appliance.sql.flight.messages import LEAD, Fields, decode

_SEND_SECONDS = 30.0
"""Timeout of sending, in seconds, where the other end may be silent."""

_ASK_SECONDS = 5.0
"""Interval of the question whether the other end is still the right one, in seconds."""


async def read_message(reader: asyncio.StreamReader) -> tuple[Fields, memoryview]:
    """The next message; OSError or IncompleteReadError if the connection has ended."""
    head, size = LEAD.unpack(await reader.readexactly(LEAD.size))
    fields = decode(await reader.readexactly(head))
    return fields, memoryview(await reader.readexactly(size))


class Connection:
    """A job's connection to the process of the lanes; ``is_current`` is asked where it may be silent."""

    def __init__(self, connection: socket.socket, is_current: Callable[[], bool] | None = None) -> None:
        self._connection = connection
        self._is_current = is_current

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._connection.close()

    def send(self, data: bytes) -> None:
        """Send a message; OSError if the other end is gone, or silent."""
        if self._is_current:
            self._connection.settimeout(_SEND_SECONDS)
        self._connection.sendall(data)

    def read(self) -> tuple[Fields, memoryview]:
        """Wait for the next message; EOFError or OSError if the other end is gone, or no longer the right one."""
        if self._is_current:
            self._connection.settimeout(_ASK_SECONDS)
        head, size = LEAD.unpack(self._exactly(LEAD.size))
        return decode(bytes(self._exactly(head))), self._exactly(size)

    def _exactly(self, size: int) -> memoryview:
        data = memoryview(bytearray(size))
        at = 0
        while at < size:
            try:
                count = self._connection.recv_into(data[at:])
            except TimeoutError:
                if self._is_current and self._is_current():
                    continue
                raise EOFError from None
            if not count:
                raise EOFError
            at += count
        return data
