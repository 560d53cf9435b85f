"""One question about one name, and the meaning of a reply to it.

The shim's clients send questions to the shim, the shim to its upstream, and the stub to its resolver.
"""

import ipaddress
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from dnslib import CLASS, EDNS0, QTYPE, RCODE, RR, DNSHeader, DNSLabel, DNSQuestion, DNSRecord

from appliance.dns.messages.wire import CODE_MASK, OPCODE_MASK, Flag, Name, read_head, read_sections
from appliance.errors import PeerError
from appliance.settings.target import normal_host

UDP_SIZE = 512
"""Octets that any resolver takes in a datagram (RFC 1035, section 4.2.1)."""
EDNS_UDP_SIZE = 1232
"""Octets that pass any IPv6 path unfragmented; what DNS servers agreed upon in 2020 (RFC 9715)."""

_UNPRINTABLE = re.compile(r"[^!-~]|[.\\]")


@dataclass(frozen=True, slots=True)
class Edns:
    """The content of an OPT record (RFC 6891, section 6.1); ``udp_size`` in octets, ``dnssec_ok`` of RFC 3225."""

    udp_size: int
    version: int
    dnssec_ok: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A query: ``name`` in the asker's case, ``flags`` only those that an asker may set."""

    identifier: int
    flags: Flag
    name: Name
    record_type: int
    edns: Edns | None
    record_class: int = CLASS.IN

    @classmethod
    def for_addresses(cls, host: str) -> "Question":
        """Ask recursively for the IPv4 addresses of ``host``, without EDNS: any resolver answers that."""
        name = tuple(label.encode("ascii") for label in normal_host(host).split("."))
        if not all(0 < len(label) < 64 for label in name) or sum(len(label) + 1 for label in name) > 254:
            raise ValueError("labels of 1 to 63 characters, 253 in all, are expected")
        return cls(secrets.randbelow(1 << 16), Flag.RECURSION_DESIRED, name, QTYPE.A, edns=None)

    @property
    def host(self) -> str:
        """The name in its normal spelling; octets that no host name holds as ``\\DDD`` (RFC 1035, section 5.1)."""
        return normal_host(".".join(_printable(label) for label in self.name))

    @property
    def udp_limit(self) -> int:
        """The largest datagram to answer with, in octets; an offer below 512 counts as 512 (RFC 6891, 6.2.3)."""
        return UDP_SIZE if self.edns is None else max(UDP_SIZE, min(self.edns.udp_size, EDNS_UDP_SIZE))

    def encode(self) -> bytes:
        """The query to forward. Of the asker's OPT record, only the size and the DNSSEC bit are kept."""
        return self.message(self.flags)

    def message(self, flags: int, code: int = 0, answers: Sequence[RR] = ()) -> bytes:
        """A message about this question, with an OPT record of ours if the asker sent one.

        Args:
            flags: the header's second word, without response code.
            code: the response code; what exceeds four bits goes to the OPT record.
            answers: the answer section.
        """
        header = DNSHeader(id=self.identifier, bitmap=flags & ~CODE_MASK | code & CODE_MASK)
        question = DNSQuestion(DNSLabel(self.name), self.record_type, self.record_class)
        return bytes(DNSRecord(header, questions=[question], rr=list(answers), ar=self._options(code >> 4)).pack())

    def _options(self, extended_code: int) -> list[RR]:
        if self.edns is None:
            return []
        flags = "do" if self.edns.dnssec_ok else ""
        return [EDNS0(ext_rcode=extended_code, flags=flags, udp_len=EDNS_UDP_SIZE)]


def _printable(label: bytes) -> str:
    return _UNPRINTABLE.sub(lambda match: f"\\{ord(match[0]):03}", label.decode("latin-1"))


def is_reply_to(question: Question, message: bytes) -> bool:
    """True if ``message`` answers ``question``: a response, the same id, name, type and class (RFC 5452, 9.1)."""
    try:
        head = read_head(message)
    except PeerError:
        return False
    return (
        head.identifier == question.identifier
        and head.flags & (Flag.RESPONSE | OPCODE_MASK) == Flag.RESPONSE
        and [label.lower() for label in head.name] == [label.lower() for label in question.name]
        and (head.record_type, head.record_class) == (question.record_type, question.record_class)
    )


def is_truncated(reply: bytes) -> bool:
    """True if the whole reply comes by TCP only."""
    return bool(read_head(reply).flags & Flag.TRUNCATED)


def response_code(reply: bytes) -> str:
    """The protocol's name of the reply's outcome, ``NOERROR`` for example."""
    return str(RCODE.get(read_head(reply).flags & CODE_MASK))


def addresses_in(reply: bytes) -> tuple[str, ...]:
    """The IPv4 addresses in the answer section, in order.

    Their owners are not compared with the question: aliases may stand between the name and its address, and a recursive
    resolver answers with nothing but that chain.
    """
    records = read_sections(reply, read_head(reply)).answers
    return tuple(
        str(ipaddress.IPv4Address(record.data))
        for record in records
        if (record.record_type, record.record_class, len(record.data)) == (QTYPE.A, CLASS.IN, 4)
    )
