"""``python -m tests.networks.programs.resolver``: the destination VPC's DNS server, until it is killed.

The queried name selects its behaviour: see ``_ANSWERS`` and ``script``.
"""

import asyncio

from dnslib import QTYPE, DNSRecord

from tests.networks.clusters import BROKERS, GRAPE_DNS
from tests.support.dns import answer, query, scripted_server

SLOW_SECONDS = 1.7
"""Longer than the shim's first try waits, and well within its second."""
LIE = "10.6.6.6"

_ANSWERS = {name: [address] for name, address in BROKERS["grape"].items()} | {
    "big.grape.example": [f"10.2.1.{number}" for number in range(60)],
    "huge.grape.example": [f"10.2.{2 + number // 200}.{number % 200}" for number in range(400)],
    "slow.grape.example": ["10.2.0.20"],
    "lying.grape.example": ["10.2.0.21"],
}
"""The addresses of a name: 60 fit into a datagram with EDNS, and 400 into no datagram. Other names have none."""


def reply(asked: bytes) -> bytes:
    """The whole answer."""
    question = DNSRecord.parse(asked).q
    known = _ANSWERS.get(str(question.qname).rstrip(".").lower(), [])
    return answer(asked, *(known if question.qtype == QTYPE.A else []))


def fitted(asked: bytes) -> bytes:
    """The answer for a datagram, truncated if the client takes less (RFC 6891, 6.2.3)."""
    offers = [record.edns_len for record in DNSRecord.parse(asked).ar if record.rtype == QTYPE.OPT]
    whole = reply(asked)
    if len(whole) <= max([512, *offers]):
        return whole
    cut = DNSRecord.parse(answer(asked))
    cut.header.tc = 1
    return bytes(cut.pack())


def lies(asked: bytes) -> list[bytes]:
    """A reply with another id, and a reply to another question."""
    other_id = bytes([asked[0] ^ 1]) + asked[1:]
    other_name = asked[:2] + query("b0.grape.example")[2:]
    return [b"noise", answer(other_id, LIE), answer(other_name, LIE)]


async def by_udp(asked: bytes) -> list[bytes]:
    match str(DNSRecord.parse(asked).q.qname).split(".")[0].lower():
        case "silent":
            return []
        case "liar":
            return lies(asked)
        case "lying":
            return [*lies(asked), fitted(asked)]
        case "slow":
            await asyncio.sleep(SLOW_SECONDS)
    return [fitted(asked)]


async def by_tcp(asked: bytes) -> list[bytes]:
    return [reply(asked)]


async def main() -> None:
    async with scripted_server(by_udp, by_tcp, GRAPE_DNS):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
