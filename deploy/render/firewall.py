"""The firewall rules of a link: the destination VM dials the source VM, and each VM dials its own brokers.

Without a tunnel, the destination VM dials the brokers of both clusters, and there is no other VM.

If an SSH server carries the tunnel, only that server is dialled from outside, and a server on the source VM needs no
other open port. A firewall lets answers through by itself, so a rule is needed only where a connection begins.
"""

import hashlib
import ipaddress
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from appliance.settings.order import REPLICATOR, OrderSettings
from appliance.settings.role import Role, prefix_of
from appliance.settings.target import is_ip_literal
from appliance.settings.values import ClusterSettings, Route, Settings, Side, TunnelSettings
from deploy.render.template import filled
from deploy.render.vm import bridge

FORMATS = ("gcloud", "aws", "nftables", "terraform")
"""The formats that ``ready`` can write."""

_NAME_MAX = 28
"""Maximum letters of a link in the name of a Google Cloud rule: its own and a hash. The whole name has at most 63."""

_HASH = 8
"""Letters of that hash."""

_WORDS = {
    4: {"family": "ip", "ranges": "IpRanges", "cidr": "CidrIp", "attribute": "cidr_ipv4"},
    6: {"family": "ip6", "ranges": "Ipv6Ranges", "cidr": "CidrIpv6", "attribute": "cidr_ipv6"},
}
"""The words of nftables, aws and Terraform for an address, by IP version."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a rule.

    ``name`` is for people, and ``variable`` for the ready commands. ``network`` is in CIDR notation, or a placeholder
    in capitals if only the user knows it. ``version`` is the IP version. ``short`` is its part of a rule's name.
    """

    name: str
    variable: str
    network: str
    version: int = 4
    short: str = "vm"


@dataclass(frozen=True, slots=True)
class Rule:
    """One opening in the firewall of the VM ``machine``: TCP from or to ``peer``, on ``first`` to ``last``.

    ``machine`` is a link's side, or the id of an order's cluster. ``across`` is true between two VPCs, and false within
    one.
    """

    machine: str
    inbound: bool
    peer: Peer
    first: int
    last: int
    across: bool
    reason: str

    @property
    def name(self) -> str:
        """A short name, unique among the link's rules."""
        return f"{_plain(self.machine)}-{'from' if self.inbound else 'to'}-{self.peer.short}-{self.first}"

    @property
    def ports(self) -> str:
        """The port or range, in the notation that all firewalls use."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def rules(settings: Settings) -> tuple[Rule, ...]:
    """All openings that the link needs on both VMs, or an order on all."""
    if isinstance(settings, OrderSettings):
        return tuple(_of_order(settings))
    by_pattern = [port for pattern in settings.tunnel.allowed.patterns for port in pattern.ports]
    to_source, to_destination = _to_brokers(settings.source, by_pattern), _to_brokers(settings.destination, ())
    if settings.route is Route.DIRECT:
        return *map(_from_the_destination_vm, to_source), *to_destination
    pairs = (rule for vm in settings.tunnel.of_each_vm for rule in _between_the_vms(vm, settings.tunnel))
    return *dict.fromkeys(pairs), *to_source, *to_destination


def _from_the_destination_vm(rule: Rule) -> Rule:
    """Without a tunnel, the destination VM dials the source brokers itself; the rule's name is beside the others'."""
    peer = replace(rule.peer, short="source")
    return replace(rule, machine=Side.DESTINATION, peer=peer, across=True)


def _of_order(settings: OrderSettings) -> Iterator[Rule]:
    """The rules of an order: of each pair of VMs beside two clusters, each VM dials the other one."""
    port, reason = settings.tunnel.listen.port, "the tunnel, which the other VM dials"
    peers = {
        each.id: _vms(f"{each.id} VM", f"{_word(each.id)}_vm", each.addresses, _plain(each.id))
        for each in settings.clusters
    }
    for one, other in itertools.combinations(peers, 2):
        for server, client in ((one, other), (other, one)):
            yield from (Rule(server, True, peer, port, port, True, reason) for peer in peers[client])
            yield from (Rule(client, False, peer, port, port, True, reason) for peer in peers[server])
    for each in settings.clusters:
        yield from _to_brokers(each.settings, (port for pattern in each.broker_patterns for port in pattern.ports))


def _between_the_vms(tunnel: TunnelSettings, of_all: TunnelSettings) -> Iterator[Rule]:
    """The rules of one source VM; among those ``of_all`` it has its number."""
    number = of_all.of_each_vm.index(tunnel)
    clients = _vms("destination VM", "destination_vm", tunnel.peer_addresses)
    server = _numbered(number, "source VM", "source_vm", tunnel.server.host)
    inside, outside, reason = tunnel.server.port, tunnel.server.port, "the tunnel, which the destination VM dials"
    if tunnel.ssh:
        ssh = tunnel.ssh.login.server
        outside = ssh.port
        if tunnel.by_own_sshd:
            server, inside = _numbered(number, "source VM", "source_vm", ssh.host), ssh.port
            reason = "the source VM's SSH server, which carries the tunnel"
        else:
            bastions = list(dict.fromkeys(each.ssh.login.server for each in of_all.of_each_vm if each.ssh))
            server = _numbered(bastions.index(ssh), "bastion", "bastion", ssh.host)
            inner = f"_{bastions.index(ssh) + 1}" if bastions.index(ssh) else ""
            name = f"bastion {ssh.host}" if len(bastions) > 1 else "bastion"
            clients = (Peer(name, f"bastion_inside{inner}", f"CIDR_OF_THE_BASTION_INSIDE{inner}"),)
            reason = "the tunnel, which comes by way of the bastion"
    yield from (Rule(Side.SOURCE, True, client, inside, inside, True, reason) for client in clients)
    yield Rule(Side.DESTINATION, False, server, outside, outside, True, reason)


def ready(form: str, settings: Settings, machine: str) -> str:
    """The rules in one of FORMATS, ready to paste; placeholders in capitals stand for what only the user knows.

    ``nftables`` is the firewall of a VM itself, so it gets the rules of ``machine`` only.
    """
    needed = [rule for rule in rules(settings) if form != "nftables" or rule.machine == machine]
    own_sshd = {vm.ssh.login.server.port for vm in settings.tunnel.of_each_vm if vm.ssh and vm.by_own_sshd}
    return filled(
        f"firewall/{form}.j2",
        link=settings.tunnel.link,
        name=_name(settings.tunnel),
        bridge=bridge(settings.tunnel.link, Role.DESTINATION if machine == Side.DESTINATION else Role.SOURCE),
        words=_WORDS,
        direct=settings.route is Route.DIRECT,
        machine=machine,
        machines=list(dict.fromkeys(rule.machine for rule in needed)),
        peers=list(dict.fromkeys(rule.peer for rule in needed)),
        inbound=[rule for rule in needed if rule.inbound],
        published=[rule for rule in needed if rule.inbound and rule.first not in own_sshd],
        outbound=[rule for rule in needed if not rule.inbound],
    )


def _vms(name: str, variable: str, hosts: Sequence[str], short: str = "vm") -> tuple[Peer, ...]:
    return tuple(_numbered(number, name, variable, host, short) for number, host in enumerate(hosts))


def _numbered(number: int, name: str, variable: str, host: str, short: str = "vm") -> Peer:
    """A machine; the second of its kind and each further one (``number`` from 1 on) has its number in its names."""
    name = f"{name} {host}"
    if number:
        variable, short = f"{variable}_{number + 1}", f"{short}{number + 1}"
    if not is_ip_literal(host):
        return Peer(name, variable, f"CIDR_OF_{variable.upper()}", short=short)
    network = ipaddress.ip_network(host)
    return Peer(name, variable, str(network), network.version, short)


def _to_brokers(cluster: ClusterSettings, more_ports: Iterable[int]) -> tuple[Rule, ...]:
    place, reason = str(cluster.place), f"the brokers of the {cluster.place} cluster"
    word = _word(place)
    brokers = Peer(f"{place} brokers", f"{word}_brokers", f"CIDR_OF_{word.upper()}_BROKERS", short="brokers")
    ports = {target.port for target in cluster.bootstrap}.union(more_ports)
    firsts = sorted(port for port in ports if port - 1 not in ports)
    lasts = sorted(port for port in ports if port + 1 not in ports)
    return tuple(Rule(place, False, brokers, *ends, False, reason) for ends in zip(firsts, lasts, strict=True))


def _word(name: str) -> str:
    """An id as a part of a variable's name."""
    return prefix_of(name).lower()


def _plain(name: str) -> str:
    """An id as a part of the name of a cloud resource."""
    return _word(name).replace("_", "-")


def _name(tunnel: TunnelSettings) -> str:
    """The link as a unique part of the name of a cloud resource or an nftables table.

    The hash separates ``a-b`` and ``c`` from ``a`` and ``b-c``, and other names that become equal in the letters that
    all systems accept.
    """
    plain = "" if tunnel.link == REPLICATOR else re.sub("[^a-z0-9]+", "-", tunnel.link.lower()).strip("-")
    digest = hashlib.sha256(json.dumps([tunnel.source_id, tunnel.destination_id]).encode()).hexdigest()[:_HASH]
    return "-".join(part for part in ("kafka", plain[: _NAME_MAX - _HASH - 1].strip("-"), digest) if part)
