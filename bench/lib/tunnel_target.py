"""The target of the benchmark's tunnels: a separate program that prints the port on which it listens.

It sends every byte of a connection back, until the first byte of a read is ``COUNT``. It sends that one back too, and
only counts all later bytes. After the peer's end, it sends the count, as 8 bytes in big-endian order.
"""

import contextlib
import selectors
import socket
import threading

COUNT = b"C"
ECHO = b"E"
COUNT_SIZE = 8
READ_SIZE = 1 << 20
_BACKLOG = 1024


def main() -> None:
    """Serve until it is killed."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    print(f"port {listener.getsockname()[1]}", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                selector.register(_accept(listener), selectors.EVENT_READ)
            elif isinstance(key.fileobj, socket.socket) and not _echoed(key.fileobj):
                selector.unregister(key.fileobj)


def _accept(listener: socket.socket) -> socket.socket:
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _echoed(connection: socket.socket) -> bool:
    """Send one byte back; return true while this connection's next bytes are also to be sent back."""
    try:
        data = connection.recv(1)
        connection.sendall(data)
    except ConnectionError:
        data = b""
    if not data:
        connection.close()
    elif data == COUNT:
        threading.Thread(target=_count, args=(connection,), daemon=True).start()
    return data == ECHO


def _count(connection: socket.socket) -> None:
    """Count in a thread, where a read can wait for a whole block, so that a byte costs nearly nothing."""
    block, total = bytearray(READ_SIZE), 0
    with connection, contextlib.suppress(ConnectionError):
        while size := connection.recv_into(block, READ_SIZE, socket.MSG_WAITALL):
            total += size
        connection.sendall(total.to_bytes(COUNT_SIZE, "big"))


if __name__ == "__main__":
    main()
