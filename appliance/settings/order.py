"""Parse the environment into the settings of a total order, or into a list of all faults."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from appliance.errors import SettingsError
from appliance.output import printable
from appliance.settings.cross_checks import cross_check
from appliance.settings.order_values import CLUSTERS_MAX, NETWORK_BITS, OrderCluster, OrderSettings
from appliance.settings.parse import parse, read_cluster
from appliance.settings.reading import Reading
from appliance.settings.role import TUNNEL_ENDS, Member, Role, prefix_of
from appliance.settings.target import AllowedTargets, Target
from appliance.settings.values import Route, Settings, TunnelSettings
from appliance.settings.variable import declared_within
from appliance.settings.variables import NAMES, OUR_PREFIXES, TABLE, members_in, removed_faults

__all__ = ["OrderCluster", "OrderSettings", "parse_order", "parser_of"]

REPLICATOR = "replicator-order"
"""The name of every order: of the tunnels between its VMs, and in its clusters."""

_OF_LINKS = ("topics", "transform", "groups", "mirror_formats", "audit")
"""Fields that an order does not read, but REPLICATION_FACTOR in the first."""
_LINK_ALONE = (
    *(name for each in TABLE if each.required and each.name != "SHARED_SECRET" for name in each.names),
    *("TUNNEL_SSH", "TUNNEL_AUTHORITY_FILE", "TUNNEL_CERTIFICATE_FILE", "TUNNEL_KEY_FILE"),
)
"""Variables that say what an order says otherwise, or cannot have: each VM is both ends of the tunnels."""
_PREFIX_MAX_LENGTH = 24
"""Longest TUNNEL_ENDPOINT_NETWORK's prefix with which each cluster has 14 addresses."""


_Entries = tuple[tuple[str, tuple[str, ...]], ...]
"""Each cluster's id and the addresses of its VMs."""


def parser_of(environment: Mapping[str, str]) -> Callable[[Mapping[str, str], Role], Settings]:
    """The parser of these settings: an order's if GLOBAL_CLUSTERS names its clusters, else a link's."""
    return parse_order if members_in(environment) else parse


def parse_order(environment: Mapping[str, str], role: Role = Role.REPLICATOR) -> OrderSettings:
    """The settings of ``role`` on the VM beside GLOBAL_CLUSTER; the rest as in ``parse``.

    Raises:
        SettingsError: with all faults, each ``VARIABLE=value: what is expected``.
    """
    reading = Reading(environment, role)
    entries, route = reading.of_name("GLOBAL_CLUSTERS"), reading.of_name("GLOBAL_ROUTE")
    cluster, home = reading.of_name("GLOBAL_CLUSTER"), reading.of_name("GLOBAL_HOME")
    if fault := next(_list_faults(entries, route), ""):
        reading.faults.append(f"GLOBAL_CLUSTERS={_shown(entries)}: {fault}")
    elif entries and cluster and cluster not in dict(entries):
        reading.faults.append(_unknown("GLOBAL_CLUSTER", cluster, entries))
    if reading.faults:  # what variables there are follows from the list
        raise SettingsError(list(map(printable, reading.faults)))
    if home and home not in dict(entries):
        reading.faults.append(_unknown("GLOBAL_HOME", home, entries))
    if route is Route.DIRECT and role & Role.REPLICATOR:
        reading.role = role = role & ~TUNNEL_ENDS
    clusters = tuple(_cluster(reading, Member(name, name == cluster), addresses) for name, addresses in entries)
    settings = _settings(reading, clusters, cluster=cluster, home=home, route=route)
    faults = [*removed_faults(environment), *_faults_of_a_link(environment), *reading.faults, *_crossed(settings, role)]
    if faults:
        raise SettingsError(list(map(printable, faults)))
    return settings


def _unknown(variable: str, name: str, entries: _Entries) -> str:
    return f"{variable}={name}: expected one of the ids in GLOBAL_CLUSTERS: {', '.join(dict(entries))}"


def _shown(entries: _Entries) -> str:
    return ",".join(f"{name}@{'+'.join(addresses)}" if any(addresses) else name for name, addresses in entries)


def _list_faults(entries: _Entries, route: Route) -> Iterator[str]:
    """The faults of the list of clusters, which is as the variable's parser takes it."""
    if entries and not 2 <= len(entries) <= CLUSTERS_MAX:
        yield f"expected two to {CLUSTERS_MAX} clusters"
    for (one, at), (other, at_other) in itertools.combinations(entries, 2):
        if prefix_of(one) == prefix_of(other):
            yield f"expected ids of their own, not {one} and {other}, whose variables are both {prefix_of(one)}_..."
        if {*at} & {*at_other} - {""}:
            yield f"expected an address for each VM: {one} and {other} have the same"
    for name, addresses in entries:
        beginning = f"{prefix_of(name)}_"
        names = {each.name for each in declared_within(OrderCluster, Member(name, own=False))}
        if beginning in OUR_PREFIXES or names & {*NAMES}:
            yield f"expected another id than {name}: variables that begin with {beginning} have a meaning already"
        if len({*addresses}) < len(addresses):
            yield f"expected an address for each VM of {name}"
        if any(addresses) != (route is Route.TUNNEL):
            wanted = f"{name}@address" if route is Route.TUNNEL else f"{name} without an address"
            yield f"expected {wanted} (GLOBAL_ROUTE={route})"


def _faults_of_a_link(environment: Mapping[str, str]) -> list[str]:
    present = ", ".join(name for name in _LINK_ALONE if environment.get(name, "").strip())
    because = "expected nothing with GLOBAL_CLUSTERS: an order has no such thing, and a link a setenv.sh of its own"
    return [f"{present}: {because}"] if present else []


def _cluster(reading: Reading, member: Member, addresses: tuple[str, ...]) -> OrderCluster:
    settings = read_cluster(reading, member, side=member.side, member=member, cluster_id=member.id)
    return reading.build(OrderCluster, member, id=member.id, addresses=addresses, settings=settings)


def _settings(reading: Reading, clusters: tuple[OrderCluster, ...], **known: Any) -> OrderSettings:
    own = next(each for each in clusters if each.id == known["cluster"])
    own_cluster = {"source": own.settings, "destination": own.settings, "broker_patterns": own.broker_patterns}
    absent = Reading({}, Role(0)).build(Settings, replicator=REPLICATOR, tunnel=_tunnel(reading, own), **own_cluster)
    known |= {field: getattr(absent, field) for field in (*own_cluster, "replicator", "tunnel", *_OF_LINKS)}
    replication_factor = reading.of_name("REPLICATION_FACTOR")
    known["topics"] = dataclasses.replace(absent.topics, replication_factor=replication_factor)
    settings = reading.build(OrderSettings, clusters=clusters, **known)
    return dataclasses.replace(settings, secret_files=tuple(reading.files))


def _tunnel(reading: Reading, own: OrderCluster) -> TunnelSettings:
    """The tunnel's server on this VM; a client of it is in ``OrderSettings.link``."""
    port = reading.of_name("TUNNEL_PORT")
    source_id, _, destination_id = REPLICATOR.partition("-")
    return reading.build(
        TunnelSettings,
        source_id=source_id,
        destination_id=destination_id,
        server=Target(own.addresses[0], port),
        peer_addresses=(),
        listen=Target(reading.of_name("TUNNEL_LISTEN") or "0.0.0.0", port),
        files=None,
        ssh=None,
        allowed=own.allowed,
    )


def _crossed(settings: OrderSettings, role: Role) -> Iterator[str]:
    """The faults that show only between values."""
    network = settings.tunnel.endpoint_network
    if network.prefixlen > _PREFIX_MAX_LENGTH:
        yield (
            f"TUNNEL_ENDPOINT_NETWORK={network}: expected /{_PREFIX_MAX_LENGTH} or larger for an order: each cluster "
            f"has one of {1 << NETWORK_BITS} parts"
        )
        return
    yield from cross_check(settings, role)
    if settings.route is Route.TUNNEL:
        for one, other in itertools.combinations(settings.clusters, 2):
            yield from _shared_names(one.allowed, other.allowed)


def _shared_names(one: AllowedTargets, other: AllowedTargets) -> Iterator[str]:
    """The fault of names that two clusters have: the DNS shim would not know whose broker is meant."""
    shared = {*_within(one, other), *_within(other, one)}
    if shared:
        names = f"{one.variables}, {other.variables}"
        yield f"{names}: expected brokers' names that tell the clusters apart: both have {', '.join(sorted(shared))}"


def _within(one: AllowedTargets, other: AllowedTargets) -> Iterator[str]:
    """The names and patterns of one list that another one has as well."""
    yield from (target.host for target in one.exact if other.ports_of(target.host))
    for pattern in one.patterns:
        if any(pattern.domain == each.domain or each.matches_host(pattern.domain) for each in other.patterns):
            yield f"*.{pattern.domain}"
