"""Find the addresses of a host: by a DNS server that the settings name, or by the system's resolver."""

import asyncio
import socket
from collections.abc import Sequence

from appliance.dns.exchange import ask_by_tcp, ask_by_udp
from appliance.dns.messages.question import Question, addresses_in, is_truncated, response_code
from appliance.errors import NameUnresolved, PeerError, Unreachable
from appliance.settings.target import Target, is_ip_literal

TIMEOUTS = (1.0, 2.0, 2.0)
"""Seconds for each try by UDP."""
TCP_TIMEOUT = 5.0
"""Seconds for a reply too large for a datagram."""


class StubResolver:
    """Asks one recursive DNS server. ``timeouts`` are the seconds of each try by UDP."""

    def __init__(self, server: Target, timeouts: Sequence[float] = TIMEOUTS) -> None:
        self._server = server
        self._timeouts = timeouts

    async def addresses(self, host: str) -> tuple[str, ...]:
        """The IPv4 addresses of ``host``, one at least; an IP literal is its own."""
        if is_ip_literal(host):
            return (host,)
        try:
            question = Question.for_addresses(host)
        except ValueError as error:
            raise NameUnresolved(f"{host} cannot be a name in DNS: {error}") from error
        return self._addresses_in(await self._ask(question), host)

    async def _ask(self, question: Question) -> bytes:
        reply = await ask_by_udp(self._server, question, self._timeouts)
        return await ask_by_tcp(self._server, question, TCP_TIMEOUT) if is_truncated(reply) else reply

    def _addresses_in(self, reply: bytes, host: str) -> tuple[str, ...]:
        code = response_code(reply)
        if code != "NOERROR":
            raise NameUnresolved(f"DNS server {self._server} answers {code} for {host}")
        try:
            addresses = addresses_in(reply)
        except PeerError as error:
            raise Unreachable(f"DNS server {self._server} sends a broken reply for {host}: {error}") from error
        if not addresses:
            raise NameUnresolved(f"DNS server {self._server} has no IPv4 address for {host}")
        return addresses


async def system_addresses(host: str) -> tuple[str, ...]:
    """The addresses of ``host`` as the system finds them (files, DNS, search list), the preferred one first."""
    if is_ip_literal(host):
        return (host,)
    loop = asyncio.get_running_loop()
    try:
        answers = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        failure = Unreachable if error.errno == socket.EAI_AGAIN else NameUnresolved
        raise failure(f"the system's resolver has no address for {host}: {error.strerror}") from error
    except ValueError as error:
        raise NameUnresolved(f"{host} cannot be a host name: {error}") from error
    return tuple(dict.fromkeys(str(socket_address[0]) for *_, socket_address in answers))
