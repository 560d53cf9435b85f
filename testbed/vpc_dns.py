"""The DNS server of the source's own network, the only one that knows the brokers' names."""

import ipaddress

from appliance.dns.server import DnsServer
from appliance.settings.target import Target
from appliance.settings.values import DnsSettings
from testbed.plan import ClusterPlan

ADDRESS = "127.0.1.53"


def vpc_dns(plan: ClusterPlan) -> DnsServer:
    """A server, not yet started, on any port of ``ADDRESS``, that knows the addresses of the nodes of ``plan``."""
    known = {node.fqdn: ipaddress.IPv4Address(node.address) for node in plan.nodes}

    async def lookup(host: str) -> ipaddress.IPv4Address | None:
        return known.get(host)

    return DnsServer(DnsSettings(Target(ADDRESS, 0), None), lookup)
