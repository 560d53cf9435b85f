"""What a reply says to the one who asked; pure."""

import ipaddress

from dnslib import CLASS, QTYPE, RCODE

from appliance.dns.messages.question import Question
from appliance.dns.messages.wire import CODE_MASK, OPCODE_MASK, Flag, read_head, read_sections
from appliance.errors import PeerError


def is_reply_to(question: Question, message: bytes) -> bool:
    """Whether ``message`` answers ``question``: a response, the same id, name, type and class (RFC 5452, 9.1)."""
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
    """Whether the whole reply is to be had by TCP only."""
    return bool(read_head(reply).flags & Flag.TRUNCATED)


def response_code(reply: bytes) -> str:
    """The protocol's name of the reply's outcome, ``NOERROR`` for example."""
    return str(RCODE.get(read_head(reply).flags & CODE_MASK))


def addresses_in(reply: bytes) -> tuple[str, ...]:
    """The IPv4 addresses in the answer section, in their order.

    Whose they are is not looked at: between the name that was asked for and the address there may be aliases, and a
    recursive resolver answers with nothing but that chain.

    Raises:
        PeerError: the reply is cut.
    """
    records = read_sections(reply, read_head(reply)).answers
    return tuple(
        str(ipaddress.IPv4Address(record.data))
        for record in records
        if (record.record_type, record.record_class, len(record.data)) == (QTYPE.A, CLASS.IN, 4)
    )
