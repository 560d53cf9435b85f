"""Faults that show only between values, or between values and this machine's files."""

import ipaddress
from collections.abc import Iterator
from pathlib import Path

from appliance.settings.control_center import page_faults
from appliance.settings.login_checks import file_faults, login_faults
from appliance.settings.patterns import pattern_faults
from appliance.settings.private_files import read_private_key, read_public_keys
from appliance.settings.role import TUNNEL_ENDS, Role
from appliance.settings.secret import new_secret, weakness
from appliance.settings.target import comparable_host, is_ip_literal, is_itself
from appliance.settings.transform import transform_faults
from appliance.settings.values import (
    EngineSettings,
    Route,
    Settings,
    SshSettings,
    TopicNaming,
    TunnelSettings,
)


def cross_check(settings: Settings, role: Role) -> list[str]:
    """Every fault that shows only when the values are seen together; empty when they agree."""
    faults = _same_cluster(settings) + _endpoints(settings) + _timeouts(settings)
    faults += _weak_secrets(settings) + _separated_names(settings)
    if role & Role.REPLICATOR:
        faults += settings.topics.naming_faults
        faults += [*file_faults(settings.destination), *_spark(settings.engine)]
        faults += [*login_faults(settings.destination), *transform_faults(settings.transform)]
    if role & TUNNEL_ENDS and settings.route is Route.TUNNEL:
        faults += [fault for each in settings.tunnel.of_each_vm for fault in _one_tunnel_address(each)]
    faults += _source_faults(settings, role & ~Role.DESTINATION)
    for link in settings.links:
        faults += _source_faults(link, role & ~Role.SOURCE) + _shared_brokers(link)
    if role & Role.CONSOLE:
        faults += page_faults(settings.control_center)
    if role & Role.DESTINATION and settings.tunnel.ssh:
        faults += _keys(settings.tunnel.ssh)
    return list(dict.fromkeys(faults))


def _source_faults(link: Settings, role: Role) -> list[str]:
    """The faults of the source, and of the list of brokers to which the tunnel goes."""
    faults = _addresses_for_the_tunnel(link)
    if role & Role.REPLICATOR:
        faults += file_faults(link.source)
    if role & (Role.DESTINATION | Role.REPLICATOR):
        faults += login_faults(link.source)
    if role & TUNNEL_ENDS and link.route is Route.TUNNEL:
        faults += pattern_faults(link.tunnel.allowed)
    return faults


def _weak_secrets(settings: Settings) -> list[str]:
    """Weak secrets among those that an attacker can try to guess, each with a stronger one."""
    tunnel = settings.tunnel
    of_tunnel = {"SHARED_SECRET": tunnel.secret, "SHARED_SECRET_PREVIOUS": tunnel.previous_secret}
    judged = {
        **(of_tunnel if settings.route is Route.TUNNEL else {}),
        "SPARK_AUTHENTICATE_SECRET": settings.engine.spark_secret,
        "CONSOLE_TOKEN": settings.control_center.token,
        "CONSOLE_VIEWER_TOKEN": settings.control_center.viewer_token,
        "REPLICA_TRANSFORM_SALT": settings.transform.salt,
    }
    names = tuple(_known_names(settings))
    causes = {name: weakness(secret.reveal(), names) for name, secret in judged.items() if secret}
    return [f"{name}: {cause}; {_stronger(name, settings)}" for name, cause in causes.items() if cause]


def _stronger(name: str, settings: Settings) -> str:
    if name == "SHARED_SECRET_PREVIOUS":
        return "leave it empty, and change SHARED_SECRET on both VMs at once"
    for file in settings.secret_files:
        if file.variable == name:
            return f"a strong one for {file.path}, made just now: {new_secret(name)}"
    return f"a strong one, made just now: export {name}='{new_secret(name)}'"


def _known_names(settings: Settings) -> Iterator[str]:
    """Names of the link that an attacker may know."""
    yield from (*(each.server.host for each in settings.tunnel.of_each_vm), settings.topics.suffix)
    yield from (pattern.domain for pattern in settings.tunnel.allowed.patterns)
    for cluster in (settings.destination, *(link.source for link in settings.links)):
        yield from (cluster.cluster_id, cluster.api_key, *(target.host for target in cluster.bootstrap))


def _same_cluster(settings: Settings) -> list[str]:
    cluster_id = settings.destination.cluster_id
    if not cluster_id or cluster_id != settings.source.cluster_id or settings.source.member:
        return []
    return [f"DESTINATION_CLUSTER_ID={cluster_id}: expected another name than SOURCE_CLUSTER_ID has"]


def _shared_brokers(link: Settings) -> list[str]:
    """Brokers of both sides: a link within one cluster. One topic may have a copy of another name there."""
    topics, (source, destination) = link.topics, (link.source, link.destination)
    if topics.naming is TopicNaming.EXACT and topics.regex != topics.name:
        return []
    others = {(comparable_host(target.host), target.port) for target in destination.bootstrap}
    return [
        f"{destination.variable('BROKER_SERVERS')}={target}: expected another cluster's broker: "
        f"{source.variable('BROKER_SERVERS')} has it too"
        for target in source.bootstrap
        if (comparable_host(target.host), target.port) in others
    ]


def _one_tunnel_address(tunnel: TunnelSettings) -> list[str]:
    """Both VMs at one address. On loopback, both ends are on one machine, for a trial."""
    server = tunnel.ssh.login.server.host if tunnel.ssh and tunnel.by_own_sshd else tunnel.server.host
    both = comparable_host(server)
    if not both or is_itself(both) or both not in map(comparable_host, tunnel.peer_addresses):
        return []
    return [
        f"DESTINATION_SIDE_TUNNEL_IP={both}: expected the destination VM's address: SOURCE_SIDE_TUNNEL_IP has it too"
    ]


def _separated_names(settings: Settings) -> list[str]:
    """Cluster ids that as the prefix of a topic's name would have no clear end; the way back has the other's."""
    separator, prefixed = settings.topics.separator, settings.topics.naming is TopicNaming.PREFIX
    if not prefixed and not settings.mirror_formats:
        return []
    because = "REPLICA_TOPICS_NAMING=prefix" if prefixed else "MM2_FORMATS=yes"
    return [
        f"{cluster.variable('CLUSTER_ID')}={cluster.cluster_id}: expected a name without {separator!r}, which ends it "
        f"before a topic's name ({because})"
        for cluster in (settings.source, settings.destination)
        if separator in cluster.cluster_id
    ]


def _addresses_for_the_tunnel(settings: Settings) -> list[str]:
    if settings.route is Route.DIRECT:
        return []
    return [
        f"{settings.source.variable('BROKER_SERVERS')}={target}: expected a name, the tunnel carries no connection to "
        f"an address (without a tunnel: {settings.route_variable}=direct)"
        for target in settings.source.bootstrap
        if is_ip_literal(target.host)
    ]


def _endpoints(settings: Settings) -> list[str]:
    network, shim = settings.tunnel.endpoint_network, settings.dns.listen
    if settings.route is Route.DIRECT or ipaddress.ip_address(shim.host.strip("[]")) not in network:
        return []
    return [f"TUNNEL_ENDPOINT_NETWORK={network}: expected a network without the address of DNS_LISTEN={shim}"]


def _timeouts(settings: Settings) -> list[str]:
    engine = settings.engine
    if engine.commit_interval < engine.transaction_timeout:
        return []
    return [
        f"TRANSACTION_TIMEOUT_SECONDS={engine.transaction_timeout:g}: expected more than COMMIT_INTERVAL_MS="
        f"{engine.commit_interval * 1000:.0f}"
    ]


def tasks_fault(engine: EngineSettings) -> str:
    """The fault of a cluster for which nobody says how many tasks there are; empty without one."""
    if engine.in_a_cluster and not engine.tasks:
        return f"TASKS=0: expected how many cores of SPARK_MASTER={engine.spark_master} copy at once"
    return ""


def _spark(engine: EngineSettings) -> list[str]:
    """Settings that a Spark cluster requires, and local mode does not."""
    faults = [fault] if (fault := tasks_fault(engine)) else []
    if engine.spark_master.startswith("spark:") and not engine.spark_secret:
        faults.append(
            f"SPARK_AUTHENTICATE_SECRET: missing: SPARK_MASTER={engine.spark_master} has its workers run whatever it "
            "is sent by those who know it; make one with: openssl rand -base64 33"
        )
    return faults


def _keys(ssh: SshSettings) -> list[str]:
    """Unusable SSH key files; a missing name is already a fault of its own."""
    files = (
        ("TUNNEL_SSH_KEY_FILE", ssh.files.key, read_private_key),
        ("TUNNEL_SSH_HOST_KEYS_FILE", ssh.files.host_keys, read_public_keys),
    )
    faults = []
    for name, path, read in files:
        try:
            if path != Path():
                read(path)
        except ValueError as error:
            faults.append(f"{name}={path}: {error}")
    return faults
