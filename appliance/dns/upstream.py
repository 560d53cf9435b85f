"""Forward questions about names that aren't ours to the resolver that the machine had before."""

import logging

from appliance.dns.exchange import ask_by_tcp, ask_by_udp
from appliance.dns.messages.answers import servfail
from appliance.dns.messages.question import Question
from appliance.errors import Unreachable
from appliance.settings.target import Target

FORWARDS_MAX = 128
"""Most questions in flight. The bound also ends undetectable loops through other servers."""

TIMEOUTS = (1.5, 2.5)
"""Seconds for each try; together less than the 5 s that glibc and musl wait for the shim."""

log = logging.getLogger("appliance.dns")


class Upstream:
    """The resolver behind the shim.

    Args:
        server: its address, never the shim's own.
        timeouts: seconds for each try by UDP; by TCP there is one try, as long as all of them.
    """

    def __init__(self, server: Target, timeouts: tuple[float, ...] = TIMEOUTS) -> None:
        self._server = server
        self._timeouts = timeouts
        self._in_flight = 0

    async def forward(self, question: Question, by_tcp: bool) -> bytes:
        """The upstream's reply, or SERVFAIL.

        A client uses TCP for a reply that is too large for a datagram, so the upstream is queried by TCP as well. A
        truncated reply to a UDP client is passed on unchanged: the client asks again by TCP.
        """
        if self._in_flight >= FORWARDS_MAX:
            return servfail(question)
        self._in_flight += 1
        try:
            return await self._ask(question, by_tcp)
        except Unreachable as error:
            log.warning("dns upstream does not answer", extra={"fields": {"host": question.host, "reason": str(error)}})
            return servfail(question)
        finally:
            self._in_flight -= 1

    async def _ask(self, question: Question, by_tcp: bool) -> bytes:
        if by_tcp:
            return await ask_by_tcp(self._server, question, sum(self._timeouts))
        return await ask_by_udp(self._server, question, self._timeouts)
