"""The text of a broker's server.properties, made from the plan without IO.

There are three listeners. HOME is advertised by address, and brokers use it among themselves. VPC is advertised by
FQDN. CONTROLLER carries the metadata quorum, in plain text on loopback; a cluster with ZooKeeper does not have it.
"""

from pathlib import Path

from appliance.settings.target import Target
from testbed.plan import ApiKey, ClusterPlan, Node, Ports

_PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
_SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_INTERNAL_PARTITIONS = 8


def server_properties(plan: ClusterPlan, node: Node, ports: Ports, directory: Path, internal: ApiKey) -> str:
    """The file's text. ``directory`` is the node's; ``internal`` is the user for connections between brokers."""
    entries = _metadata_on_zookeeper(plan, node, ports) if plan.on_zookeeper else _metadata_quorum(plan, node, ports)
    entries |= _listeners(plan, node, ports) | _topics(plan.replicas) | _timing_and_memory()
    entries["log.dirs"] = str(directory / "data")
    if plan.security.encrypted:
        entries |= _encryption(directory)
    if plan.security.authenticated:
        entries |= _authentication(plan, node, internal)
    if plan.limited_keys:
        entries |= _authorization(plan, internal)
    entries |= dict(plan.properties)
    return "".join(f"{name}={value}\n" for name, value in entries.items())


def _metadata_quorum(plan: ClusterPlan, node: Node, ports: Ports) -> dict[str, str]:
    """A controller that is alone writes no empty records while it is idle: nobody waits for them, and each costs."""
    voters = ",".join(f"{voter.id}@{voter.address}:{ports.controller}" for voter in plan.nodes)
    idle = {"metadata.max.idle.interval.ms": "0"} if len(plan.nodes) == 1 else {}
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
    } | idle


def _metadata_on_zookeeper(plan: ClusterPlan, node: Node, ports: Ports) -> dict[str, str]:
    return {"broker.id": str(node.id), "zookeeper.connect": f"{plan.nodes[0].address}:{ports.controller}"}


def _client_listeners(node: Node) -> tuple[str, ...]:
    return ("HOME",) if node.fqdn is None else ("HOME", "VPC")


def _listeners(plan: ClusterPlan, node: Node, ports: Ports) -> dict[str, str]:
    bound = [f"HOME://{node.address}:{ports.home}"]
    advertised = [f"HOME://{node.address}:{ports.home}"]
    if node.fqdn is not None:
        vpc_port = node.vpc_port or ports.vpc
        bound.append(f"VPC://{node.address}:{vpc_port}")
        advertised.append(f"VPC://{node.fqdn}:{vpc_port}")
    protocols = [f"{listener}:{plan.security}" for listener in _client_listeners(node)]
    if not plan.on_zookeeper:
        bound.append(f"CONTROLLER://{node.address}:{ports.controller}")
        protocols.append("CONTROLLER:PLAINTEXT")
    return {
        "listeners": ",".join(bound),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": ",".join(protocols),
        "inter.broker.listener.name": "HOME",
    }


def _topics(replicas: int) -> dict[str, str]:
    in_sync = str(max(1, replicas - 1))
    return {
        "auto.create.topics.enable": "false",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": str(replicas),
        "offsets.topic.num.partitions": str(_INTERNAL_PARTITIONS),
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": str(_INTERNAL_PARTITIONS),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": str(_INTERNAL_PARTITIONS),
    }


def _timing_and_memory() -> dict[str, str]:
    """Settings for shorter waits and less memory than in production (the cleaner's buffer has 128 MiB by default).

    A killed broker is replaced, and admitted again, only when its session has ended. At the first append, a new
    partition's two empty index files are read whole; at their default of 10 MiB each, this costs some milliseconds.
    """
    return {
        "broker.heartbeat.interval.ms": "300",
        "broker.session.timeout.ms": "3000",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.backoff.ms": "1000",
        "log.cleaner.dedupe.buffer.size": str(4 << 20),
        "log.index.size.max.bytes": str(256 << 10),
        "log.segment.delete.delay.ms": "1000",
    }


def _encryption(directory: Path) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory.parent / "ca.pem"),
    }


def _users(plan: ClusterPlan, internal: ApiKey) -> tuple[ApiKey, ...]:
    return (internal, *plan.api_keys, *plan.limited_keys)


def _authorization(plan: ClusterPlan, internal: ApiKey) -> dict[str, str]:
    """ACLs (KIP-801) for the limited keys only; controllers connect anonymously."""
    unlimited = ("ANONYMOUS", internal.key, *(key.key for key in plan.api_keys))
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in unlimited),
    }


def _authentication(plan: ClusterPlan, node: Node, internal: ApiKey) -> dict[str, str]:
    """Settings of PLAIN with the plan's keys, and of SCRAM, whose users a client makes once the cluster runs
    (KIP-554)."""
    users = " ".join(f'user_{user.key}="{user.secret.reveal()}"' for user in _users(plan, internal))
    own = f'username="{internal.key}" password="{internal.secret.reveal()}"'
    entries = {
        "sasl.enabled.mechanisms": ",".join(["PLAIN", *_SCRAM_MECHANISMS]),
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    for listener in _client_listeners(node):
        prefix = f"listener.name.{listener.lower()}"
        entries[f"{prefix}.plain.sasl.jaas.config"] = f"{_PLAIN_LOGIN} required {own} {users};"
        for mechanism in _SCRAM_MECHANISMS:
            entries[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = f"{_SCRAM_LOGIN} required;"
    return entries


def client_configuration(
    plan: ClusterPlan, bootstrap: tuple[Target, ...], ca_file: Path | None, api_key: ApiKey | None
) -> dict[str, str]:
    """The client's configuration. It holds the secret, so do not log it."""
    entries = {
        "bootstrap.servers": ",".join(str(target) for target in bootstrap),
        "security.protocol": plan.security.value,
    }
    if ca_file is not None:
        entries["ssl.ca.location"] = str(ca_file)
    if api_key is not None:
        entries |= {
            "sasl.mechanism": "PLAIN",
            "sasl.username": api_key.key,
            "sasl.password": api_key.secret.reveal(),
        }
    return entries
