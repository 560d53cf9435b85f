"""Loopback addresses for broker names: one for each name, the same after every restart."""

import hashlib
import ipaddress

from appliance.errors import SettingsError
from appliance.settings.target import normal_host


class AddressBook:
    """Gives each host name an address of its own in a network.

    The address follows from the name's hash. So it survives restarts without a file, and does not depend on the order
    of the queries. If two names have the same hash, the later one takes the next free address. In the default /10, this
    happens to one pair in four million.

    Args:
        network: where the addresses lie; its first and last address are never given.
    """

    def __init__(self, network: ipaddress.IPv4Network) -> None:
        self._network = network
        self._places = max(network.num_addresses - 2, 0)
        self._given: dict[str, ipaddress.IPv4Address] = {}
        self._taken: set[ipaddress.IPv4Address] = set()

    def address_of(self, host: str) -> ipaddress.IPv4Address:
        """The address of ``host``, however it is spelled.

        Raises:
            SettingsError: every address of the network belongs to another name.
        """
        host = normal_host(host)
        if host not in self._given:
            self._given[host] = self._free_address(host)
            self._taken.add(self._given[host])
        return self._given[host]

    def _free_address(self, host: str) -> ipaddress.IPv4Address:
        if len(self._taken) >= self._places:
            raise SettingsError([f"no address for {host}: all {self._places} of {self._network} are given to others"])
        first = int.from_bytes(hashlib.sha256(host.encode()).digest(), "big")
        probes = (self._network[1 + (first + step) % self._places] for step in range(self._places))
        return next(address for address in probes if address not in self._taken)
