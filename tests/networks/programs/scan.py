"""``python -m tests.networks.programs.scan ADDRESS``: the answers of all TCP ports of an IPv4 address to a SYN, as
JSON.

The scan is half open, so that it takes seconds even with a silent firewall. A raw socket sends a SYN to each port, and
another one to each silent port. The kernel, which knows no connection, answers a SYN+ACK with RST.

A TCP header: source port u16, destination port u16, sequence u32, acknowledgement u32, offset and flags u16, window
u16, checksum u16, urgent u16. The checksum covers a pseudo header as well (RFC 9293, section 3.1).
"""

import json
import socket
import struct
import sys
import time

_HEADER = struct.Struct("!HHIIHHHH")
_OFFSET = 5 << 12
_SYN, _RST, _ACK = 0x02, 0x04, 0x10
_PORTS = range(1, 65536)
_BURST = 100
"""SYNs between two reads of the answers: fewer than a socket's buffer holds."""
_QUIET_SECONDS = 0.5
_ROUNDS = 2


def syn(source: str, source_port: int, target: str, port: int) -> bytes:
    """The segment that requests a connection."""
    pseudo = socket.inet_aton(source) + socket.inet_aton(target) + struct.pack("!HH", socket.IPPROTO_TCP, _HEADER.size)
    blank = _HEADER.pack(source_port, port, 1, 0, _OFFSET | _SYN, 1024, 0, 0)
    total = sum(struct.unpack("!16H", pseudo + blank))
    folded = (total & 0xFFFF) + (total >> 16)
    checksum = ~(folded + (folded >> 16)) & 0xFFFF
    return _HEADER.pack(source_port, port, 1, 0, _OFFSET | _SYN, 1024, checksum, 0)


def source_for(target: str) -> str:
    """The local address of packets to the target."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((target, 9))
        return str(probe.getsockname()[0])


def drain(raw: socket.socket, target: str, own_port: int, answers: dict[int, bool]) -> None:
    """Read the answers so far: True for a port that accepts, False for one that refuses."""
    while True:
        try:
            packet, (sender, _) = raw.recvfrom(128)
        except BlockingIOError:
            return
        segment = packet[(packet[0] & 0xF) * 4 :]
        port, to, _, _, flags, *_ = _HEADER.unpack_from(segment)
        if (sender, to) == (target, own_port):
            answers[port] = flags & (_SYN | _ACK | _RST) == _SYN | _ACK


def scan(target: str) -> dict[int, bool]:
    """The ports that answered; True if a port accepts."""
    answers: dict[int, bool] = {}
    source = source_for(target)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as raw,
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as held,
    ):
        held.bind((source, 0))
        own_port = held.getsockname()[1]
        raw.setblocking(False)
        for _ in range(_ROUNDS):
            for position, port in enumerate([port for port in _PORTS if port not in answers]):
                raw.sendto(syn(source, own_port, target, port), (target, 0))
                if position % _BURST == 0:
                    drain(raw, target, own_port, answers)
            time.sleep(_QUIET_SECONDS)
            drain(raw, target, own_port, answers)
    return answers


if __name__ == "__main__":
    found = scan(sys.argv[1])
    accepting = sorted(port for port, accepts in found.items() if accepts)
    print(json.dumps({"open": accepting, "closed": len(found) - len(accepting), "silent": len(_PORTS) - len(found)}))
