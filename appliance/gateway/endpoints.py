"""Where the destination VM reaches the source brokers: an address for each name, the broker's own ports on it."""

import asyncio
import ipaddress
import logging

from appliance.dns.addresses import AddressBook
from appliance.errors import SettingsError
from appliance.settings.target import AllowedTargets, Target, normal_host
from appliance.tunnel.client import TunnelClient

HOSTS_MAX = 1000
"""Names with endpoints, at most: a program may ask for any number of invented ones that the pattern allows."""

log = logging.getLogger("appliance.gateway")


class Endpoints:
    """Opens the endpoints of the allowed names, the exact ones at once and those of the patterns when asked for.

    Args:
        allowed: which names there may be, on which ports.
        book: gives each name its address.
        client: listens there and carries to the broker.
    """

    def __init__(self, allowed: AllowedTargets, book: AddressBook, client: TunnelClient) -> None:
        self._allowed = allowed
        self._book = book
        self._client = client
        self._hosts: set[str] = set()
        self._open: set[Target] = set()
        self._opening = asyncio.Lock()

    async def open_exact(self) -> None:
        """Open those of the exact targets.

        Raises:
            SettingsError: an address or a port cannot be had.
        """
        for target in self._allowed.exact:
            await self._open_all(target.host, self._book.address_of(target.host))

    async def lookup(self, host: str) -> ipaddress.IPv4Address | None:
        """The address of ``host``, its endpoints open by then; None when the name is not ours, or one too many.

        When an endpoint cannot be opened the log says so, and the next question tries again; the asker gets the address
        and finds nobody there, as with any broker that is down.
        """
        host = normal_host(host)
        if not self._allowed.ports_of(host):
            return None
        if host not in self._hosts and len(self._hosts) >= HOSTS_MAX:
            log.warning("name not mapped, too many: SOURCE_BROKER_PATTERN", extra={"fields": {"host": host}})
            return None
        address = self._book.address_of(host)
        try:
            await self._open_all(host, address)
        except SettingsError as error:
            log.error("endpoint not opened", extra={"fields": {"host": host, "cause": str(error)}})
        return address

    async def _open_all(self, host: str, address: ipaddress.IPv4Address) -> None:
        self._hosts.add(host)
        async with self._opening:
            for port in self._allowed.ports_of(host):
                await self._open_one(Target(host, port), address)

    async def _open_one(self, target: Target, address: ipaddress.IPv4Address) -> None:
        if target in self._open:
            return
        await self._client.open_endpoint(target, str(address), target.port)
        self._open.add(target)
        log.info("endpoint open", extra={"fields": {"target": str(target), "address": str(address)}})
