"""The shim's two sockets, UDP and TCP on one port, and the loopback address that it gives each broker name."""

import contextlib
import errno
import hashlib
import ipaddress
import os
import socket

from appliance.errors import SettingsError
from appliance.settings.target import Target, normal_host
from appliance.settings.values import DnsSettings

_ATTEMPTS = 32
_CURES = {
    errno.EACCES: "ports below 1024 need root or CAP_NET_BIND_SERVICE",
    errno.EADDRINUSE: "another program has it, stop that or choose another address",
}


def check(settings: DnsSettings) -> None:
    """Refuse settings that would open the shim to a network or let it ask itself."""
    faults = _listen_faults(settings.listen) + _upstream_faults(settings)
    if faults:
        raise SettingsError(faults)


def bind(listen: Target) -> tuple[socket.socket, socket.socket]:
    """A UDP and a listening TCP socket on the same address and port; port 0 takes one that is free for both."""
    host = listen.host.strip("[]")
    if listen.port == 0:
        # A port that is free for one of the two may be taken for the other.
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(OSError):
                return _bind_both(host, listen.port)
    try:
        return _bind_both(host, listen.port)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        cure = _CURES.get(error.errno or 0, "choose another address")
        raise SettingsError([f"DNS_LISTEN: cannot listen on {listen}: {reason}; {cure}"]) from error


def _bind_both(host: str, port: int) -> tuple[socket.socket, socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    streams = socket.create_server((host, port), family=family)
    datagrams = socket.socket(family, socket.SOCK_DGRAM)
    try:
        datagrams.bind(streams.getsockname())
    except OSError:
        streams.close()
        datagrams.close()
        raise
    return datagrams, streams


def _listen_faults(listen: Target) -> list[str]:
    address = _address(listen)
    if address is not None and address.is_loopback:
        return []
    return [f"DNS_LISTEN: {listen} is not a loopback address: choose one in 127.0.0.0/8, or ::1"]


def _upstream_faults(settings: DnsSettings) -> list[str]:
    upstream = settings.upstream
    if upstream is None:
        return []
    address = _address(upstream)
    if address is None:
        return [f"DNS_UPSTREAM: {upstream} needs DNS to be found: give the resolver's IP address"]
    if address.is_unspecified or (address, upstream.port) == (_address(settings.listen), settings.listen.port):
        return [f"DNS_UPSTREAM: {upstream} is the shim itself: name another resolver, or leave it empty"]
    return []


def _address(target: Target) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(target.host.strip("[]"))
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


class AddressBook:
    """Gives each host name an address of its own in a network.

    The address follows from the name's hash. So it survives restarts without a file, and does not depend on the order
    of the queries. If two names have the same hash, the later one takes the next free address. In the default /10, this
    happens to one pair in four million. The first and the last address of the network are never given.
    """

    def __init__(self, network: ipaddress.IPv4Network) -> None:
        self._network = network
        self._places = max(network.num_addresses - 2, 0)
        self._given: dict[str, ipaddress.IPv4Address] = {}
        self._taken: set[ipaddress.IPv4Address] = set()

    def address_of(self, host: str) -> ipaddress.IPv4Address:
        """The address of ``host``, however it is spelled."""
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
