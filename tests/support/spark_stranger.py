"""A stranger at Spark's ports: it speaks Spark's transport protocol, and knows no secret.

A frame is its own length (8 bytes, big-endian), the type of its message (1 byte), and the message. A string is its
length (4 bytes) and its bytes; a string of Java's ``DataOutput`` has a length of 2 bytes. The answers are in Spark's
own source, ``org.apache.spark.network.protocol.Message``.
"""

import contextlib
import struct
from dataclasses import dataclass
from socket import create_connection

import psutil

from tests.support.patience import PATIENCE

GREETING = b"GET / HTTP/1.0\r\n\r\n"
"""A greeting that separates listeners: a web page answers it, py4j does not know the command, and Spark disconnects."""

CHUNK_FETCH_FAILURE, STREAM_FAILURE = 2, 8

_CHUNK_FETCH_REQUEST, _RPC_REQUEST, _STREAM_REQUEST, _ONE_WAY_MESSAGE = 0, 3, 6, 9
_RPC_FAILURE = 5
_HEADER = struct.Struct(">qb")
_A_JAVA_STRING = b"\xac\xed\0\5t\0\5hello"
_REQUEST = 7
_AT_ONCE = 65536
_NOTHING = bytes(2**20)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a request: its first message, and True if the connection has then ended."""

    kind: int
    text: str
    ended: bool

    @property
    def refused(self) -> bool:
        """True if the request was taken for a failed authentication, and not read."""
        return self.kind == _RPC_FAILURE and "Unknown challenge message" in self.text and self.ended


def rpc(address: tuple[str, int], endpoint: str) -> bytes:
    """A call to an endpoint of Spark: an accepted caller can make Java read an object."""
    return _rpc(_call(address, endpoint))


def block_request(block: str) -> bytes:
    """A request to read a block, OpenBlocks."""
    return _rpc(b"\0" + _string("app") + _string("driver") + struct.pack(">i", 1) + _string(block))


def one_way(address: tuple[str, int], endpoint: str) -> bytes:
    """The same as ``rpc``, without an answer."""
    body = _call(address, endpoint)
    return _frame(_ONE_WAY_MESSAGE, struct.pack(">i", len(body)) + body)


def stream_request(stream: str) -> bytes:
    """A request to read a file that Spark serves, or a block that was opened."""
    return _frame(_STREAM_REQUEST, _string(stream))


def chunk_request(stream: int) -> bytes:
    """A request to read the first of the opened blocks."""
    return _frame(_CHUNK_FETCH_REQUEST, struct.pack(">qi", stream, 0))


def asked(address: tuple[str, int], *frames: bytes) -> Answer:
    """The first answer; after a refusal, or without an answer, wait for the connection's end."""
    with create_connection(address, timeout=PATIENCE) as connection, connection.makefile("rb") as reader:
        connection.sendall(b"".join(frames))
        header = reader.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return Answer(-1, "", True)
        size, kind = _HEADER.unpack(header)
        text = reader.read(size - _HEADER.size).decode(errors="replace")
        return Answer(kind, text, "Unknown challenge message" in text and not reader.read())


def said(address: tuple[str, int], words: bytes) -> bytes:
    """The response up to the other end's end of the connection."""
    answer = b""
    with create_connection(address, timeout=PATIENCE) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(words)
        while more := connection.recv(_AT_ONCE):
            answer += more
    return answer


def poured(address: tuple[str, int], beginning: bytes, size: int = 2**30) -> int:
    """The number of bytes that are accepted out of ``size`` unrequested ones."""
    taken = 0
    with create_connection(address, timeout=PATIENCE) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(beginning)
        while taken < size:
            taken += connection.send(_NOTHING)
    return taken


def greeted(address: tuple[str, int]) -> bytes:
    """The first line of the answer, empty without one."""
    with create_connection(address, timeout=PATIENCE) as connection, connection.makefile("rb") as reader:
        connection.sendall(GREETING)
        return reader.readline().strip()


def listeners(process: psutil.Process) -> set[tuple[str, int]]:
    """The process's listening addresses that the network can reach."""
    found = process.net_connections("inet")
    return {(c.laddr.ip.removeprefix("::ffff:"), c.laddr.port) for c in found if c.status == psutil.CONN_LISTEN}


def _call(address: tuple[str, int], endpoint: str) -> bytes:
    host, port = address
    receiver = b"\1" + _short(host) + struct.pack(">i", port) + _short(endpoint)
    return b"\0" + receiver + _A_JAVA_STRING


def _rpc(body: bytes) -> bytes:
    return _frame(_RPC_REQUEST, struct.pack(">qi", _REQUEST, len(body)) + body)


def _frame(kind: int, message: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(message), kind) + message


def _string(text: str) -> bytes:
    return struct.pack(">i", len(text)) + text.encode()


def _short(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
