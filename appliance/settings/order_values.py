"""The settings of a total order, ``T-global`` in several clusters, as the VM beside one of them reads them."""

import dataclasses
from dataclasses import dataclass

from appliance.settings.clusters import ClusterSettings
from appliance.settings.parsers import choice, host, identifier, listed, matching, whole, yes_or_no
from appliance.settings.role import EVERY_ROLE, prefix_of
from appliance.settings.target import AllowedTargets, Target, TargetPattern
from appliance.settings.topics import regular_expression
from appliance.settings.values import PATTERN_PURPOSE, PATTERN_ROLES, Route, Settings
from appliance.settings.variable import REQUIRED, made_of, of_each_cluster, variable

CLUSTERS_MAX = 9
"""Most clusters of an order."""

NETWORK_BITS = 4
"""Bits of TUNNEL_ENDPOINT_NETWORK that name the cluster, one of 16 of which CLUSTERS_MAX are used."""

_name = matching("[A-Za-z][A-Za-z0-9._-]{0,17}", "id@address, an id of at most 18 of a-z A-Z 0-9 . _ -, a letter first")


def _entry(value: str) -> tuple[str, tuple[str, ...]]:
    """``id@address`` or ``id@address+address``, or the id alone, to the id and the addresses."""
    name, _, addresses = value.partition("@")
    return _name(name), tuple(map(host, addresses.split("+"))) if addresses else ("",)


@dataclass(frozen=True, slots=True)
class OrderCluster:
    """One cluster. ``addresses`` are those of the VMs beside it, the preferred one first; empty without a tunnel."""

    id: str
    addresses: tuple[str, ...]
    settings: ClusterSettings
    broker_patterns: tuple[TargetPattern, ...] = of_each_cluster(
        "BROKER_PATTERN", listed(TargetPattern.parse), roles=PATTERN_ROLES
    ).purpose(PATTERN_PURPOSE)

    @property
    def allowed(self) -> AllowedTargets:
        """The brokers to which its VM carries connections."""
        return AllowedTargets(self.settings.bootstrap, self.broker_patterns, prefix_of(self.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSettings(Settings):
    """The values of an order's setenv.sh, which differs between the VMs in GLOBAL_CLUSTER alone.

    Its base are the settings of this VM: source and destination are the cluster beside it, and ``tunnel`` is the server
    there. ``links`` has the way to each other cluster. ``clusters`` is in the order of GLOBAL_CLUSTERS. ``alone`` lets
    the home of two clusters go on without the other one.
    """

    clusters: tuple[OrderCluster, ...] = made_of(
        variable("GLOBAL_CLUSTERS", listed(_entry), REQUIRED, EVERY_ROLE).purpose(
            "Clusters of a total order, each with the VMs beside it: id@address or id@address+address, comma separated."
        )
    )
    cluster: str = variable("GLOBAL_CLUSTER", identifier, REQUIRED, EVERY_ROLE).purpose(
        "Id of the cluster beside this VM: the one line that differs between the VMs of an order."
    )
    home: str = variable("GLOBAL_HOME", identifier, REQUIRED).purpose(
        "Id of the cluster that gives the records their order at the beginning."
    )
    topics_regex: str = variable("GLOBAL_TOPICS_REGEX", regular_expression, REQUIRED).purpose(
        "Topics of the order, a regular expression for whole names; T in each cluster gets T-global beside it."
    )
    partitions: int = variable("GLOBAL_PARTITIONS", whole(0, 1), "0").purpose(
        "Partitions of T-global: 0: as many as T has, with an order in each; 1: one order over all partitions."
    )
    alone: bool = variable("GLOBAL_ALONE", yes_or_no, "yes").purpose(
        "With two clusters, let the home go on alone while the other one is down: yes or no."
    )
    route: Route = variable("GLOBAL_ROUTE", choice(Route), "tunnel", EVERY_ROLE).purpose(  # in SOURCE_ROUTE's place
        "Route between the clusters: tunnel, or direct if no tunnel is needed."
    )

    @property
    def own(self) -> OrderCluster:
        """The cluster beside this VM."""
        return self[self.cluster]

    def __getitem__(self, name: str) -> OrderCluster:
        """The cluster with this id."""
        return next(each for each in self.clusters if each.id == name)

    @property
    def links(self) -> tuple[Settings, ...]:
        """The links into this VM's cluster, one from each other cluster."""
        return tuple(self.link(each.id) for each in self.clusters if each.id != self.cluster)

    def link(self, name: str) -> Settings:
        """The link from another cluster: its brokers, and the tunnel to its VM with addresses of its own."""
        other, place = self[name], [each.id for each in self.clusters].index(name)
        server, *others = (Target(address, self.tunnel.server.port) for address in other.addresses)
        tunnel = dataclasses.replace(
            self.tunnel,
            server=server,
            others=tuple((each, None) for each in others),
            allowed=other.allowed,
            endpoint_network=[*self.tunnel.endpoint_network.subnets(NETWORK_BITS)][place],
        )
        same = {field.name: getattr(self, field.name) for field in dataclasses.fields(Settings)}
        return Settings(**same | {"source": other.settings, "broker_patterns": other.broker_patterns, "tunnel": tunnel})
