"""The table of all variables of setenv.sh, taken from the fields of ``values.Settings``, and faults of other names."""

import difflib
from collections.abc import Mapping

from appliance.settings.one_topic import ONE_TOPIC_NAMES
from appliance.settings.values import Settings
from appliance.settings.variable import declared_within

TABLE = tuple(declared_within(Settings))
"""Every variable, in the order of the template."""

BY_NAME = {variable.name: variable for variable in TABLE}

NAMES = (*(name for variable in TABLE for name in variable.names), *ONE_TOPIC_NAMES)
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

_OUR_PREFIXES = ("SOURCE_", "DESTINATION_", "TUNNEL_", "DNS_", "REPLICA_", "COMMIT_", "CONSOLE_", "CONTROL_CENTER_")


def removed_faults(environment: Mapping[str, str]) -> list[str]:
    """The fault of each variable that is set and that an older release had."""
    return [f"{name}: gone: {instead}" for name, instead in GONE.items() if environment.get(name, "").strip()]


def name_fault(name: str | None) -> str | None:
    """The fault of a name in setenv.sh that is nearly one of ours, with the nearest; None for any other."""
    if name is None or name in NAMES or name in GONE:
        return None
    nearest = difflib.get_close_matches(name.upper(), NAMES, n=1, cutoff=0.8)
    if not nearest and not name.upper().startswith(_OUR_PREFIXES):
        return None
    nearest = nearest or difflib.get_close_matches(name.upper(), NAMES, n=1, cutoff=0.0)
    return f"{name}: no such variable: did you mean {nearest[0]}?"
