"""The tables of all variables of setenv.sh, taken from the fields of the settings, and faults of other names."""

from collections.abc import Mapping, Sequence

from appliance.listing import did_you_mean, nearest
from appliance.settings.one_topic import ONE_TOPIC_NAMES
from appliance.settings.order_values import OrderCluster, OrderSettings
from appliance.settings.role import Member, prefix_of
from appliance.settings.values import Settings
from appliance.settings.variable import Variable, declared_within

TABLE = tuple(declared_within(Settings))
"""Every variable of a link, in the order of the template."""

ORDER_TABLE = tuple(each for each in declared_within(OrderSettings) if each not in TABLE)
"""The variables that an order has besides, in the order of the template."""

BY_NAME = {variable.name: variable for variable in (*TABLE, *ORDER_TABLE)}

NAMES = (*(name for variable in BY_NAME.values() for name in variable.names), *ONE_TOPIC_NAMES)
"""Every name that setenv.sh and the environment of a process may have."""

GONE = {
    "TUNNEL_TARGET_NETWORKS": "use TUNNEL_BROKER_NETWORKS, which names all networks that brokers are in",
    "TUNNEL_TRANSPORT": "the tunnel is always TLS; to carry it through an SSH server, set TUNNEL_SSH instead",
    "TUNNEL_SSH_USER": "the user is part of TUNNEL_SSH=user@host:port now",
    "TUNNEL_SSH_PEER_KEYS_FILE": "use TUNNEL_SSH_HOST_KEYS_FILE, on the destination VM alone",
    "TUNNEL_SSH_BASTION": "use TUNNEL_SSH",
    "TUNNEL_SSH_BASTION_KEY_FILE": "use TUNNEL_SSH_KEY_FILE",
    "TUNNEL_SSH_BASTION_HOST_KEYS_FILE": "use TUNNEL_SSH_HOST_KEYS_FILE",
    "LANES_BALANCE": "the replicator moves no partitions by itself any more; use `appliance lanes --balance`",
    "PROGRESS_LISTENER": "there is no listener any more; read `appliance status --json`, or /metrics on CONSOLE_LISTEN",
}
"""Variables that an older setenv.sh may hold, with their replacements."""

OUR_PREFIXES = (
    *("SOURCE_", "DESTINATION_", "TUNNEL_", "DNS_", "REPLICA_", "COMMIT_", "CONSOLE_", "CONTROL_CENTER_"),
    "GLOBAL_",
)


def members_in(environment: Mapping[str, str]) -> tuple[Member, ...]:
    """The clusters of the order that the environment describes; none if it is a link's."""
    own = environment.get("GLOBAL_CLUSTER", "").strip()
    names = (entry.partition("@")[0].strip() for entry in environment.get("GLOBAL_CLUSTERS", "").split(","))
    return tuple(Member(name, name == own) for name in dict.fromkeys(names) if name)


def table_of(environment: Mapping[str, str]) -> tuple[Variable[object], ...]:
    """Every variable of the link or of the order that the environment describes."""
    return (*BY_NAME.values(), *(each for member in members_in(environment) for each in _of_cluster(member)))


def _of_cluster(member: Member) -> list[Variable[object]]:
    """The variables of a cluster of an order, whose id is in GLOBAL_CLUSTERS."""
    of_its_id = f"{prefix_of(member.id)}_CLUSTER_ID"
    return [each for each in declared_within(OrderCluster, member) if each.name != of_its_id]


def removed_faults(environment: Mapping[str, str]) -> list[str]:
    """The fault of each variable that is set and that an older release had."""
    return [f"{name}: gone: {instead}" for name, instead in GONE.items() if environment.get(name, "").strip()]


def name_fault(name: str | None, members: Sequence[Member] = ()) -> str | None:
    """The fault of a name in setenv.sh that is nearly one of ours, with the nearest; None for any other.

    ``members`` are the clusters of the order whose file it is.
    """
    names = (*NAMES, *(name for member in members for each in _of_cluster(member) for name in each.names))
    if name is None or name in names or name in GONE:
        return None
    prefixes = (*OUR_PREFIXES, *(f"{prefix_of(member.id)}_" for member in members))
    if not nearest(name, names, 0.8) and not name.upper().startswith(prefixes):
        return None
    return did_you_mean(name, names, "variable", 0.0)
