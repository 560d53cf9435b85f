"""Endpoints of the source brokers on the destination VM: an address for each name, with the broker's own ports."""

import asyncio
import ipaddress
import logging
from collections.abc import Mapping
from typing import NoReturn

from appliance.dns.binding import AddressBook
from appliance.errors import NameUnresolved, SettingsError
from appliance.settings.target import AllowedTargets, Target, normal_host
from appliance.tunnel.client import TunnelClient

ASKED_MAX = 1000
"""Most names, and endpoints, opened on demand: a program may ask for any number of invented names."""
PORTS_ASKED_MAX = 16
"""Most ports of a name that are opened on demand; of a wider range only those that metadata names."""

log = logging.getLogger("appliance.gateway")


class Endpoints:
    """Opens the endpoints of the allowed names: the exact ones at once, others when they are asked for or listed."""

    def __init__(self, allowed: AllowedTargets, book: AddressBook, client: TunnelClient) -> None:
        self.allowed = allowed
        self._book = book
        self._client = client
        self._hosts: set[str] = set()
        self._open: set[Target] = set()
        self._opening = asyncio.Lock()
        self._full = False

    @property
    def count(self) -> int:
        """The number of open endpoints."""
        return len(self._open)

    @property
    def addresses(self) -> Mapping[Target, str]:
        """The brokers with an open endpoint, in order, and the address of each."""
        return {target: str(self._book.address_of(target.host)) for target in sorted(self._open)}

    async def open_exact(self) -> None:
        """Open those of the exact targets; raises as ``open``."""
        for target in self.allowed.exact:
            await self.open(target)

    async def open(self, target: Target) -> None:
        """Open the endpoint of an allowed target, unless it is open."""
        async with self._opening:
            if target in self._open:
                return
            address = self._book.address_of(target.host)
            await self._client.open_endpoint(target, str(address), target.port)
            self._open.add(target)
            self._hosts.add(target.host)
        log.info("endpoint open", extra={"fields": {"target": str(target), "address": str(address)}})

    async def lookup(self, host: str) -> ipaddress.IPv4Address | None:
        """The address of ``host``, its endpoints open by then; None when the name is not ours.

        If an endpoint cannot be opened, the log says so, and the next query tries again. The client gets the address,
        and is refused there, as by a broker that is down.

        Raises:
            NameUnresolved: the name is ours, and one too many; no other resolver must be asked.
            SettingsError: all addresses are given.
        """
        host = normal_host(host)
        ports = self.allowed.ports_of(host)
        if not ports:
            return None
        if host not in self._hosts and max(len(self._hosts), len(self._open)) >= ASKED_MAX:
            self._refuse(host)
        self._hosts.add(host)
        address = self._book.address_of(host)
        try:
            for port in ports if len(ports) <= PORTS_ASKED_MAX else ():
                await self.open(Target(host, port))
        except SettingsError as error:
            log.error("endpoint not opened", extra={"fields": {"host": host, "cause": str(error)}})
        return address

    def _refuse(self, host: str) -> NoReturn:
        variable = f"{self.allowed.prefix}_BROKER_PATTERN"
        if not self._full:
            log.warning(f"name not mapped, too many: {variable}", extra={"fields": {"host": host}})
        self._full = True
        raise NameUnresolved(f"{host} is one of more than {ASKED_MAX} names: {variable}")
