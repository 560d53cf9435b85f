"""A task that Spark has given up, and that lives on.

On a cluster of machines Spark gives up an executor that it hears no more of and tries its tasks again, whatever the
first try still does. On one machine it gives up only a Python process that has ended; so that one ends, and leaves
a double behind, which has all that it had, its connections and its open transaction, but none to Spark.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def leave_behind(note: Path) -> None:
    """Returns in the double alone, once it has stopped and was told to go on; ``note`` gets its process id."""
    loop = asyncio.get_running_loop()
    # Not by Python's own fork: a worker's children would end at once, as a worker does when its daemon has gone.
    if ctypes.PyDLL(None).fork():
        os.kill(os.getpid(), signal.SIGKILL)
    asyncio._set_running_loop(loop)  # it knows that this is another process
    for connection in _unknown_to(loop):
        with contextlib.suppress(OSError):  # one of ours that was reset a moment ago is known to nobody any more
            connection.shutdown(socket.SHUT_RDWR)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # for Spark's complaint that nobody takes what it has done
    note.write_text(str(os.getpid()))
    os.kill(os.getpid(), signal.SIGSTOP)


def _unknown_to(loop: Any) -> Iterator[socket.socket]:
    """Spark's: the loop has all of ours, and what has no name is the loop's own."""
    ours = loop._selector.get_map()
    for entry in Path("/proc/self/fd").iterdir():
        number = int(entry.name)
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as connection:
            if number not in ours and connection.getsockname():
                yield connection
