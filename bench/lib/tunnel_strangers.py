"""``python -m bench.lib.tunnel_strangers PORT SECONDS``: a stranger that sends hellos to a tunnel as fast as possible.

The hellos offer only a finite field of 8192 bits, which costs a server that accepts it a tenth of a second. The program
prints the number of its hellos, and reads no answer.
"""

import contextlib
import os
import socket
import struct
import sys
import time

STRANGER = "127.0.0.9"
"""The stranger's own address; the tunnels' connections come from others."""
_DEADLINE = 5.0


_FFDHE8192 = 0x0104
_GROUPS, _SIGNATURES, _VERSIONS, _KEY_SHARE = 10, 13, 43, 51
_KEY_BYTES = 1024


def hello() -> bytes:
    """A ClientHello that offers ffdhe8192, with a key share of it (RFC 8446, 4.1.2); not every Python can make one."""
    share = struct.pack(">HH", _FFDHE8192, _KEY_BYTES) + bytes([1]) * _KEY_BYTES
    extensions = b"".join(
        struct.pack(">HH", kind, len(content)) + content
        for kind, content in (
            (_GROUPS, struct.pack(">HH", 2, _FFDHE8192)),
            (_SIGNATURES, struct.pack(">HHHH", 6, 0x0403, 0x0804, 0x0401)),
            (_VERSIONS, struct.pack(">BH", 2, 0x0304)),
            (_KEY_SHARE, struct.pack(">H", len(share)) + share),
        )
    )
    session = bytes([32]) + os.urandom(32)
    body = b"\3\3" + os.urandom(32) + session + struct.pack(">HHBB", 2, 0x1301, 1, 0)
    body += struct.pack(">H", len(extensions)) + extensions
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return struct.pack(">BHH", 22, 0x0301, len(message)) + message


def flood(host: str, port: int, seconds: float) -> int:
    """Number of hellos sent within ``seconds``, each on its own connection, which is then reset."""
    said, sent, until = hello(), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.socket() as stranger:
            stranger.settimeout(_DEADLINE)
            stranger.bind((STRANGER, 0))
            stranger.connect((host, port))
            stranger.sendall(said)
            sent += 1
    return sent


if __name__ == "__main__":
    print(flood("127.0.0.1", int(sys.argv[1]), float(sys.argv[2])), flush=True)
