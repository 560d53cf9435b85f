"""A task that Spark has given up, and that lives on.

On a cluster of machines Spark gives up an executor that it hears no more of and tries its tasks again, whatever the
first try still does. On one machine it gives up only a Python process that has ended; so that one ends, and leaves
a double behind, which has all that it had, its connections and its open transaction, but none to Spark.
"""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path


def leave_behind(note: Path) -> None:
    """Returns in the double alone, once it has stopped and was told to go on; ``note`` gets its process id."""
    loop = asyncio.get_running_loop()
    if os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    asyncio._set_running_loop(loop)  # it knows that this is another process
    for connection in _named_unix_sockets():
        connection.shutdown(socket.SHUT_RDWR)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # for Spark's complaint that nobody takes what it has done
    note.write_text(str(os.getpid()))
    os.kill(os.getpid(), signal.SIGSTOP)


def _named_unix_sockets() -> Iterator[socket.socket]:
    """Spark's daemon listens on one, and its JVM comes by it; those of asyncio's own have no name."""
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(entry.name))) as connection:
            if connection.family is socket.AF_UNIX and connection.getsockname():
                yield connection
