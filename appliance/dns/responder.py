"""What happens to one query between its arrival and its reply, whatever it came by."""

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable

from appliance.dns.answers import Dismissed, answer_mapped, decode, refuse, servfail, truncate
from appliance.dns.question import Question
from appliance.dns.upstream import Upstream

Lookup = Callable[[str], Awaitable[ipaddress.IPv4Address | None]]
"""Maps a host, in its normal spelling, to the address it has here; None says that the name isn't ours.

It is asked at once for every question about a name, so several times in parallel for one host, and is cancelled when
it takes longer than ``LOOKUP_TIMEOUT``.
"""

LOOKUP_TIMEOUT = 4.0
"""Seconds; less than the 5 s after which glibc and musl give up on the shim."""

log = logging.getLogger("appliance.dns")


class Responder:
    """Answers queries about mapped names, forwards or refuses the others.

    Args:
        lookup: knows which names are mapped.
        upstream: knows all other names; None means that they are refused.
    """

    def __init__(self, lookup: Lookup, upstream: Upstream | None) -> None:
        self._lookup = lookup
        self._upstream = upstream

    async def reply_to(self, query: bytes, by_tcp: bool) -> bytes | None:
        """The reply to a query, or None for silence; raises nothing, whatever the query holds or the lookup does."""
        question = decode(query)
        if isinstance(question, Dismissed):
            return question.reply
        reply = await self._reply_to(question, by_tcp)
        return reply if by_tcp else truncate(question, reply, question.udp_limit)

    async def _reply_to(self, question: Question, by_tcp: bool) -> bytes:
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                address = await self._lookup(question.host)
        except Exception:
            # The lookup is the gateway's; no fault of it may cost more than this one question.
            log.exception("dns lookup failed", extra={"fields": {"host": question.host}})
            return servfail(question)
        if address is not None:
            return answer_mapped(question, address)
        return refuse(question) if self._upstream is None else await self._upstream.forward(question, by_tcp)
