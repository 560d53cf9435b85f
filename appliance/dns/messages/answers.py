"""The shim's reply to a query: bytes in, bytes out.

    query -> decode -> Dismissed: its reply, or silence
                    -> Question -> answer_mapped | refuse | servfail | a forwarded reply -> truncate

A mapped name has only an A record. Any other type gets NOERROR with an empty answer, never NXDOMAIN, which would deny
the whole name and thus the A record. The authority section stays empty too: an empty answer without SOA must not be
cached (RFC 2308, section 5), which is right for a name that may be unmapped a moment later.
"""

import ipaddress
import struct
from dataclasses import dataclass

from dnslib import CLASS, QTYPE, RCODE, RR, A, DNSHeader, DNSLabel, DNSRecord

from appliance.dns.messages.question import Edns, Question
from appliance.dns.messages.wire import CODE_MASK, HEADER_SIZE, OPCODE_MASK, Flag, Record, read_head, read_sections
from appliance.errors import PeerError

MAPPED_TTL = 5
"""Seconds that a client may keep a mapped address."""

_BADVERS = 16
_ASKED_FLAGS = Flag.RECURSION_DESIRED | Flag.AUTHENTIC_DATA | Flag.CHECKING_DISABLED
_ECHOED_FLAGS = Flag.RECURSION_DESIRED | Flag.CHECKING_DISABLED
_TRANSFERS = (QTYPE.AXFR, QTYPE.IXFR)

_RECORDS_MAX = 16
"""Most records of a query, which has one or two; a datagram of thousands takes 30 ms."""


@dataclass(frozen=True, slots=True)
class Dismissed:
    """A query about which nothing needs to be looked up; ``reply`` None means silence."""

    reply: bytes | None


def decode(query: bytes) -> Question | Dismissed:
    """Decode and check the bytes from a client; never raises.

    - less than a header, or a response: silence, so that two servers never talk to each other endlessly;
    - an opcode other than QUERY: NOTIMP;
    - not exactly one question, too many records, a cut message, an illegal name, two OPT records: FORMERR;
    - an EDNS version other than 0: BADVERS (RFC 6891, section 6.1.3);
    - a class other than IN, a zone transfer: REFUSED, it is this server's policy and not a missing feature
      (RFC 1035, section 4.1.1).
    """
    if len(query) < HEADER_SIZE:
        return Dismissed(None)
    identifier, flags = struct.unpack_from("!HH", query)
    if flags & Flag.RESPONSE:
        return Dismissed(None)
    if flags & OPCODE_MASK:
        return Dismissed(_bare_reply(identifier, flags, RCODE.NOTIMP))
    try:
        return _judge(query)
    except PeerError:
        return Dismissed(_bare_reply(identifier, flags, RCODE.FORMERR))


def answer_mapped(question: Question, address: ipaddress.IPv4Address) -> bytes:
    """The answer to a question about a mapped name."""
    if question.record_type != QTYPE.A:
        return _reply(question, RCODE.NOERROR, [])
    record = RR(DNSLabel(question.name), QTYPE.A, CLASS.IN, MAPPED_TTL, A(tuple(address.packed)))
    return _reply(question, RCODE.NOERROR, [record])


def refuse(question: Question) -> bytes:
    """REFUSED: the name is not ours, and there is no resolver to forward to."""
    return _reply(question, RCODE.REFUSED, [])


def servfail(question: Question) -> bytes:
    """SERVFAIL: something failed, and asking again may help."""
    return _reply(question, RCODE.SERVFAIL, [])


def truncate(question: Question, reply: bytes, limit: int) -> bytes:
    """The reply itself if it has at most ``limit`` octets, else its header with TC: the client asks again by TCP."""
    if len(reply) <= limit:
        return reply
    (word,) = struct.unpack_from("!H", reply, 2)
    return question.message(word | Flag.TRUNCATED, word & CODE_MASK)


def _judge(query: bytes) -> Question | Dismissed:
    head = read_head(query)
    if sum(head.counts) > _RECORDS_MAX:
        raise PeerError(f"a DNS query with {sum(head.counts)} records")
    edns = _edns(read_sections(query, head).additionals)
    flags = Flag(head.flags) & _ASKED_FLAGS
    question = Question(head.identifier, flags, head.name, head.record_type, edns, head.record_class)
    if edns is not None and edns.version:
        return Dismissed(_reply(question, _BADVERS, []))
    if head.record_class != CLASS.IN or head.record_type in _TRANSFERS:
        return Dismissed(refuse(question))
    return question


def _edns(records: tuple[Record, ...]) -> Edns | None:
    options = [record for record in records if record.record_type == QTYPE.OPT]
    if not options:
        return None
    if len(options) > 1 or not options[0].at_root:
        raise PeerError("a DNS query with two OPT records, or one below the root")
    ttl = options[0].ttl
    return Edns(options[0].record_class, version=ttl >> 16 & 0xFF, dnssec_ok=bool(ttl & 0x8000))


def _reply(question: Question, code: int, records: list[RR]) -> bytes:
    # glibc and Go take an empty NOERROR without AA and RA for a lame server's answer, and ask the next server.
    flags = Flag.RESPONSE | Flag.AUTHORITATIVE | Flag.RECURSION_AVAILABLE
    return question.message(flags | question.flags & _ECHOED_FLAGS, code, records)


def _bare_reply(identifier: int, flags: int, code: int) -> bytes:
    echoed = flags & (OPCODE_MASK | Flag.RECURSION_DESIRED)
    return bytes(DNSRecord(DNSHeader(id=identifier, bitmap=Flag.RESPONSE | echoed | code)).pack())
