"""Log records for systemd's journal by its native protocol: a datagram of fields for each.

::

    NAME=value\\n                             of a value without line ends
    NAME\\n  length as uint64le  value\\n      of any other
"""

import logging
import os
import re
import socket
import struct
import sys
from collections.abc import Callable, Mapping

SOCKET = "/run/systemd/journal/socket"
_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
_DEBUG = 7
_VALUE_MAX = 32 * 1024
"""Bytes of a value: a datagram holds some 200 KB."""


def journal_of(process: Mapping[str, str], address: str = SOCKET) -> socket.socket | None:
    """The journal's socket, if stderr goes there, and not by way of another program.

    It is connected at once, because a confined process opens no files later.
    """
    if not (stream := process.get("JOURNAL_STREAM")):
        return None
    try:
        status = os.fstat(sys.stderr.fileno())
        if stream != f"{status.st_dev}:{status.st_ino}":
            return None
        journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        journal.connect(address)
    except (OSError, ValueError):  # stderr is closed, or this is a container without the socket
        return None
    return journal


class JournalHandler(logging.Handler):
    """Sends records with their fields, whose names are in capitals: ``fields`` gives those of a record."""

    def __init__(self, journal: socket.socket, fields: Callable[[logging.LogRecord], Mapping[str, object]]) -> None:
        super().__init__()
        self._journal, self._fields = journal, fields

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record."""
        priority = next((number for level, number in _PRIORITIES if record.levelno >= level), _DEBUG)
        own = {"MESSAGE": self.format(record), "PRIORITY": priority, "EVENT": record.getMessage()}
        try:
            self._journal.send(datagram({**self._fields(record), **own, "LOGGER": record.name}))
        except OSError:
            self.handleError(record)


def datagram(fields: Mapping[str, object]) -> bytes:
    """The fields of a record as the journal takes them; those with the journal's own names are not ours to set."""
    return b"".join(_field(re.sub(r"[^A-Z0-9_]", "_", name.upper()).lstrip("_"), str(fields[name])) for name in fields)


def _field(name: str, text: str) -> bytes:
    value = text.encode("utf-8", "replace")[:_VALUE_MAX].decode("utf-8", "ignore").encode()
    between = b"\n" + struct.pack("<Q", len(value)) if b"\n" in value else b"="
    return name.encode() + between + value + b"\n"
