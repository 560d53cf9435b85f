"""``python -m bench.lib.tunnel_strangers PORT SECONDS``: a stranger that sends hellos to a tunnel as fast as possible.

The hellos offer only a finite field of 8192 bits, which costs a server that accepts it a tenth of a second. The program
prints the number of its hellos, and reads no answer.
"""

import contextlib
import socket
import ssl
import sys
import time

STRANGER = "127.0.0.9"
"""The stranger's own address; the tunnels' connections come from others."""
_DEADLINE = 5.0


def hello() -> bytes:
    """A ClientHello that offers ffdhe8192."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ecdh_curve("ffdhe8192")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


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
