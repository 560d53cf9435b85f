"""``flood.py PORT ADDRESS COUNT``: opens so many connections from one address and says nothing on any.

Keeps those that are not reset, and prints how many these are once all have been tried, and again whenever fewer are
left: who is flooded may need a while to reset the others. Ends with its standard input.
"""

import contextlib
import select
import selectors
import socket
import sys
from time import monotonic

AT_ONCE = 200
QUIET_SECONDS = 0.5


def opened(port: int, address: str) -> socket.socket:
    """A connection that has been asked for."""
    connection = socket.socket()
    connection.setblocking(False)
    connection.bind((address, 0))
    connection.connect_ex(("127.0.0.1", port))
    return connection


def drop_the_lost(selector: selectors.BaseSelector, seconds: float) -> bool:
    """Close those that the other end has ended; whether there were any."""
    events = selector.select(seconds)
    for key, _ in events:
        connection = key.fileobj
        with contextlib.suppress(BlockingIOError, ConnectionError):
            if connection.recv(1):
                continue
        selector.unregister(connection)
        connection.close()
    return bool(events)


def stands(connection: socket.socket) -> bool:
    """True if the other end has answered at all: where its backlog is full, the kernel asks again after a second."""
    with contextlib.suppress(OSError):
        return bool(connection.getpeername())
    return False


def main(port: int, address: str, count: int) -> None:
    """See above."""
    selector = selectors.DefaultSelector()
    for number in range(count):
        selector.register(opened(port, address), selectors.EVENT_READ)
        if number % AT_ONCE == 0:
            drop_the_lost(selector, 0.01)
    told, quiet_since = False, monotonic()
    while not select.select([sys.stdin], [], [], 0)[0]:
        if drop_the_lost(selector, 0.1):
            told, quiet_since = False, monotonic()
        elif not told and monotonic() - quiet_since > QUIET_SECONDS:
            told = True
            print(sum(stands(key.fileobj) for key in selector.get_map().values()), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
