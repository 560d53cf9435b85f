"""One query from its arrival to its reply, by UDP or TCP."""

import asyncio
import enum
import ipaddress
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

from appliance.dns.exchange import Upstream
from appliance.dns.messages.answers import Dismissed, answer_mapped, decode, refuse, servfail, truncate
from appliance.dns.messages.question import Question, response_code
from appliance.errors import ApplianceError

Lookup = Callable[[str], Awaitable[ipaddress.IPv4Address | None]]
"""Maps a host, in its normal spelling, to the address it has here; None says that the name isn't ours.

It raises an ApplianceError if the name is ours but has no address. The query is then not forwarded, because another
server might know another address. It is called for every query, so several times in parallel for one host, and is
cancelled after ``LOOKUP_TIMEOUT``.
"""

LOOKUP_TIMEOUT = 4.0
"""Longest look-up, in seconds: less than the 5 s after which glibc and musl give up on the shim."""

log = logging.getLogger("appliance.dns")


class Outcome(enum.StrEnum):
    """The outcome of a query."""

    MAPPED = "mapped"
    FORWARDED = "forwarded"
    REFUSED = "refused"
    SERVFAIL = "servfail"
    MALFORMED = "malformed"
    DROPPED = "dropped"


QueryCounters = Counter[Outcome]
"""Queries by outcome. ``DROPPED`` ones came while too many others were being answered."""


class Responder:
    """Answers queries about mapped names, forwards or refuses the others.

    Without an upstream, all other names are refused.

    ``counters`` counts the queries by outcome.
    """

    def __init__(self, lookup: Lookup, upstream: Upstream | None) -> None:
        self.counters = QueryCounters()
        self._lookup = lookup
        self._upstream = upstream

    async def reply_to(self, query: bytes, by_tcp: bool) -> bytes | None:
        """The reply to a query, or None for silence; raises nothing, whatever the query holds or the lookup does."""
        question = decode(query)
        if isinstance(question, Dismissed):
            self.counters[Outcome.MALFORMED] += 1
            return question.reply
        outcome, reply = await self._reply_to(question, by_tcp)
        self.counters[outcome] += 1
        return reply if by_tcp else truncate(question, reply, question.udp_limit)

    async def _reply_to(self, question: Question, by_tcp: bool) -> tuple[Outcome, bytes]:
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                address = await self._lookup(question.host)
        except ApplianceError as error:
            log.debug("dns name not answered", extra={"fields": {"host": question.host, "reason": str(error)}})
            return Outcome.SERVFAIL, servfail(question)
        except Exception:
            # The lookup belongs to the gateway. A fault in it may affect only this question.
            log.exception("dns lookup failed", extra={"fields": {"host": question.host}})
            return Outcome.SERVFAIL, servfail(question)
        if address is not None:
            return Outcome.MAPPED, answer_mapped(question, address)
        if self._upstream is None:
            return Outcome.REFUSED, refuse(question)
        reply = await self._upstream.forward(question, by_tcp)
        return Outcome.SERVFAIL if response_code(reply) == "SERVFAIL" else Outcome.FORWARDED, reply
