"""``python -m tests.networks.programs.dnspython SERVER``: sends queries with dnspython, which is strict.

The standard input is a JSON list of ``[name, type, class, protocol, EDNS size]``, with size 0 for none. The standard
output is a JSON list of ``[status, flags, question, answers, EDNS size]``.
"""

import json
import sys

import dns.flags
import dns.message
import dns.query
import dns.rcode

_SECONDS = 8.0

Understood = tuple[str, list[str], str, list[str], int | None]


def ask(server: str, name: str, kind: str, record_class: str, protocol: str, size: int) -> Understood:
    """Send one query; raises dnspython's errors for a reply that is malformed, or does not match the query."""
    query = dns.message.make_query(name, kind, record_class, use_edns=0 if size else -1, payload=size)
    send = dns.query.udp if protocol == "udp" else dns.query.tcp
    reply = send(query, server, timeout=_SECONDS)
    question = reply.question[0].to_text()
    answers = [
        " ".join(line.split()[:1] + line.split()[2:]) for rrset in reply.answer for line in rrset.to_text().splitlines()
    ]
    flags = dns.flags.to_text(reply.flags).lower().split()
    return dns.rcode.to_text(reply.rcode()), flags, question, answers, reply.payload if reply.edns >= 0 else None


if __name__ == "__main__":
    print(json.dumps([ask(sys.argv[1], *question) for question in json.load(sys.stdin)]))
