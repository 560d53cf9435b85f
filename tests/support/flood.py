"""``flood.py PORT ADDRESS COUNT``: opens COUNT connections from one address, and sends no bytes.

It keeps the connections that are not reset. It prints their number once all have been tried, and again whenever it
falls, because the flooded server may need a while for its resets. It ends with its standard input.
"""

import contextlib
import select
import selectors
import socket
import sys
from time import monotonic

AT_ONCE = 200
OPEN_MAX = 500
"""Those that the server holds and its backlog: one that finds that full may never be told that it is lost."""
QUIET_SECONDS = 0.5


def opened(port: int, address: str) -> socket.socket:
    """A requested connection."""
    connection = socket.socket()
    connection.setblocking(False)
    connection.bind((address, 0))
    connection.connect_ex(("127.0.0.1", port))
    return connection


def drop_the_lost(selector: selectors.BaseSelector, seconds: float) -> bool:
    """Close the connections that the other end has ended; return true if there were any."""
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
    """True if the other end has answered; if its backlog is full, the kernel asks again after a second."""
    with contextlib.suppress(OSError):
        return bool(connection.getpeername())
    return False


def main(port: int, address: str, count: int) -> None:
    """Run the program."""
    selector = selectors.DefaultSelector()
    for number in range(count):
        selector.register(opened(port, address), selectors.EVENT_READ)
        if number % AT_ONCE == 0:
            drop_the_lost(selector, 0.01)
        while len(selector.get_map()) > OPEN_MAX:
            drop_the_lost(selector, 0.1)
    printed, quiet_since = False, monotonic()
    while not select.select([sys.stdin], [], [], 0)[0]:
        if drop_the_lost(selector, 0.1):
            printed, quiet_since = False, monotonic()
        elif not printed and monotonic() - quiet_since > QUIET_SECONDS:
            printed = True
            print(sum(stands(key.fileobj) for key in selector.get_map().values()), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
