"""One question about one name, whoever asks it: the shim's clients, the shim its upstream, the stub its resolver."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from dnslib import CLASS, EDNS0, QTYPE, RR, DNSHeader, DNSLabel, DNSQuestion, DNSRecord

from appliance.dns.messages.wire import CODE_MASK, Flag, Name
from appliance.settings.target import normal_host

UDP_SIZE = 512
"""Octets that any resolver takes in a datagram (RFC 1035, section 4.2.1)."""
EDNS_UDP_SIZE = 1232
"""Octets that pass any IPv6 path unfragmented; what DNS servers agreed upon in 2020 (RFC 9715)."""

_UNPRINTABLE = re.compile(r"[^!-~]|[.\\]")


@dataclass(frozen=True, slots=True)
class Edns:
    """What an OPT record says (RFC 6891, section 6.1); ``udp_size`` in octets, ``dnssec_ok`` of RFC 3225."""

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
        """Ask recursively for the IPv4 addresses of ``host``, without EDNS: any resolver answers that.

        Raises:
            ValueError: ``host`` cannot be a name in DNS.
        """
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
        """The query; what the asker's OPT record held beyond size and DNSSEC bit is between it and us, and left out."""
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
