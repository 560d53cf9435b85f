"""The load on a tunnel, or on no tunnel, through an address that leads to ``tunnel_target``.

All functions block. They are cheap beside any tunnel, because a stream is sent in blocks that are made once.
"""

import contextlib
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from appliance.errors import ApplianceError, ProcessFailed
from bench.lib.latency_figures import percentile
from bench.lib.tunnel_target import COUNT, COUNT_SIZE, ECHO, READ_SIZE

Entrance = tuple[str, int]
"""Host and port."""

_DEADLINE = 20.0
_AT_ONCE = 8
_BLOCK = bytes(READ_SIZE)


@dataclass(frozen=True, slots=True)
class Latency:
    """The round trip of one byte, in microseconds."""

    median: float
    p99: float


def streamed(entrance: Entrance, streams: int, seconds: float) -> float:
    """Bytes a second that arrive over so many simultaneous streams, of all bytes that were sent in so many seconds."""
    begin = threading.Barrier(streams)

    def stream(_: int) -> tuple[int, float, float]:
        with _connected(entrance, COUNT) as connection:
            begin.wait(_DEADLINE)
            begun = time.perf_counter()
            sent = _send(connection, begun + seconds)
            arrived = int.from_bytes(connection.recv(COUNT_SIZE, socket.MSG_WAITALL), "big")
            if arrived != sent:
                raise ProcessFailed(f"of {sent} bytes that were sent {arrived} arrived")
            return arrived, begun, time.perf_counter()

    with _translated(entrance), ThreadPoolExecutor(streams) as threads:
        done = list(threads.map(stream, range(streams)))
    return sum(size for size, _, _ in done) / (max(end for *_, end in done) - min(begun for _, begun, _ in done))


def _send(connection: socket.socket, until: float) -> int:
    """Send blocks, then end our direction; return the number of bytes."""
    sent = 0
    while time.perf_counter() < until:
        connection.sendall(_BLOCK)
        sent += len(_BLOCK)
    connection.shutdown(socket.SHUT_WR)
    return sent


def latency(entrance: Entrance, seconds: float) -> Latency:
    """Measure the round trip of single bytes, one after the other, on one connection."""
    taken = []
    with _translated(entrance), _connected(entrance, ECHO) as connection:
        until = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < until:
            connection.sendall(ECHO)
            _read(connection)
            taken.append(1e6 * (time.perf_counter() - begun))
    return Latency(statistics.median(taken), percentile(taken, 0.99))


def connected(entrance: Entrance, seconds: float) -> float:
    """Connections a second, each with one byte there and back; a few at once, so that the processor is never idle."""
    begun = time.perf_counter()

    def connect(_: int) -> int:
        count = 0
        while time.perf_counter() < begun + seconds:
            with _connected(entrance, ECHO):
                count += 1
        return count

    with _translated(entrance), ThreadPoolExecutor(_AT_ONCE) as threads:
        return sum(threads.map(connect, range(_AT_ONCE))) / (time.perf_counter() - begun)


@contextlib.contextmanager
def idle(entrance: Entrance, connections: int) -> Iterator[None]:
    """Idle connections: each has carried one byte there and back."""
    with contextlib.ExitStack() as stack:
        with _translated(entrance):
            for _ in range(connections):
                stack.enter_context(_connected(entrance, ECHO))
        yield


@contextlib.contextmanager
def _connected(entrance: Entrance, first: bytes) -> Iterator[socket.socket]:
    """A connection to the target on which ``first`` has come back."""
    with socket.create_connection(entrance, _DEADLINE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(first)
        _read(connection)
        yield connection


def _read(connection: socket.socket) -> None:
    if not connection.recv(1):
        raise ConnectionResetError("closed")


@contextlib.contextmanager
def _translated(entrance: Entrance) -> Iterator[None]:
    try:
        yield
    except ApplianceError:
        raise
    except (OSError, threading.BrokenBarrierError) as error:
        raise ProcessFailed(f"connection through {entrance[0]} port {entrance[1]} failed: {error}") from error
