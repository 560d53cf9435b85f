"""The setenv.sh of each VM of the demo's order, and the names of what is in it."""

from collections.abc import Mapping
from dataclasses import dataclass

from appliance.settings.target import Target
from demo.input import InputTopic

TOPIC = InputTopic("orders", 0, partitions=2)
ORDERED = f"{TOPIC.name}-global"

ADDRESSES = {"orange": "127.0.4.1", "grape": "127.0.4.2", "lemon": "127.0.4.3"}
"""The address of the VM beside each cluster."""
_NETWORKS = {"orange": "127.64.0.0/12", "grape": "127.80.0.0/12", "lemon": "127.96.0.0/12"}
"""The loopback addresses for the brokers behind the tunnels of each VM, which has a loopback of its own elsewhere."""


@dataclass(frozen=True, slots=True)
class OrderAddresses:
    """The addresses at which one VM listens, besides its tunnel, and asks for the names of its brokers."""

    shim: Target
    vpc_resolver: Target
    console: Target


def order_setenv(
    own: str, brokers: Mapping[str, Target], home: Target, port: int, secret: str, at: OrderAddresses
) -> str:
    """The text of the file of the VM beside the cluster ``own``.

    Args:
        own: the cluster.
        brokers: the broker of each cluster, by its name in its own network.
        home: the own broker, by a name that this machine resolves.
        port: the port of all tunnels.
        secret: the shared secret.
        at: the addresses of this VM.
    """
    values = {
        "GLOBAL_CLUSTERS": ",".join(f"{name}@{address}" for name, address in ADDRESSES.items()),
        "GLOBAL_CLUSTER": own,
        "GLOBAL_HOME": next(iter(ADDRESSES)),
        "GLOBAL_TOPICS_REGEX": TOPIC.name,
        "SHARED_SECRET": secret,
        "LANES": "1",
        "TUNNEL_PORT": str(port),
        "TUNNEL_LISTEN": ADDRESSES[own],
        "TUNNEL_RESOLVER": str(at.vpc_resolver),
        "TUNNEL_BROKER_NETWORKS": "127.0.0.0/16",
        "TUNNEL_STATUS_LISTEN": "127.0.0.1:0",
        "TUNNEL_ENDPOINT_NETWORK": _NETWORKS[own],
        "DNS_LISTEN": str(at.shim),
        "CONSOLE_LISTEN": str(at.console),
    }
    for name, broker in brokers.items():
        servers = [home, broker] if name == own else [broker]
        values[f"{name.upper()}_BROKER_SERVERS"] = ",".join(map(str, servers))
        values[f"{name.upper()}_SECURITY_PROTOCOL"] = "PLAINTEXT"
    return "".join(f"export {name}='{value}'\n" for name, value in values.items())
