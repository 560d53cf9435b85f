"""Parse the environment into settings, or into a list of all faults."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from appliance.errors import SettingsError
from appliance.output import printable
from appliance.settings.cross_checks import cross_check
from appliance.settings.logins import ClientCertificate, OAuthSettings
from appliance.settings.one_topic import with_one_topic
from appliance.settings.reading import Reading
from appliance.settings.role import TUNNEL_ENDS, Place, Role, Side, prefix_of
from appliance.settings.target import AllowedTargets, Target, TargetPattern, is_ip_literal, is_itself
from appliance.settings.values import (
    CertificateFiles,
    ClusterSettings,
    KeyFiles,
    Route,
    SaslMechanism,
    Settings,
    SshSettings,
    TopicNaming,
    TopicSettings,
    TunnelSettings,
)
from appliance.settings.variable import declared_within
from appliance.settings.variables import removed_faults

_NO_TUNNEL = (
    "SOURCE_ROUTE=direct: no source VM is needed, and no end of a tunnel: the destination VM alone runs such a link "
    "(docs/start/direct.md)"
)
_BESIDE_FILES = "; certificates of your own no longer take its place, since it proves the first flight"


def parse(environment: Mapping[str, str], role: Role) -> Settings:
    """The settings of ``role``; variables that it does not need may be absent, but are checked where they are given.

    Without a tunnel, nothing is needed for its ends, and nobody is one.

    Raises:
        SettingsError: with all faults, each ``VARIABLE=value: what is expected``.
    """
    environment, faults = with_one_topic(environment)
    if environment.get("GLOBAL_CLUSTERS", "").strip():
        faults.append("GLOBAL_CLUSTERS: expected nothing here: it makes this a total order, and this is for a link")
    route = Reading(environment, role)
    if route.of_name("SOURCE_ROUTE") is Route.DIRECT:
        faults += [_NO_TUNNEL] if role and role in TUNNEL_ENDS else []
        role &= ~TUNNEL_ENDS
    elif route.faults:  # nothing of a tunnel is missing, as long as nobody knows whether there is one
        faults += route.faults
        environment = {**environment, "SOURCE_ROUTE": "direct"}
        role &= ~TUNNEL_ENDS
    reading = Reading(environment, role)
    settings = _settings(reading)
    wrong = {fault.partition("=")[0] for fault in reading.faults}  # and so not missing too
    crossed = [fault for fault in cross_check(settings, role) if fault.partition(": missing")[0] not in wrong]
    faults += removed_faults(environment) + reading.faults + crossed
    if faults:
        raise SettingsError(list(map(printable, faults)))
    return settings


def _settings(reading: Reading) -> Settings:
    source, destination = (read_cluster(reading, side, side=side) for side in Side)
    patterns = reading.of_name("SOURCE_BROKER_PATTERN")
    settings = reading.build(
        Settings,
        replicator=f"replicator-{source.cluster_id}",
        source=source,
        broker_patterns=patterns,
        destination=destination,
        topics=_topics(reading),
        tunnel=_tunnel(reading, source, destination.cluster_id, patterns),
    )
    return dataclasses.replace(settings, secret_files=tuple(reading.files))


def read_cluster(reading: Reading, place: Place, **known: Any) -> ClusterSettings:
    """The settings of one cluster; the fields that are ``known`` have no variables."""
    variables = {variable.name: variable for variable in declared_within(ClusterSettings, place)}
    protocol: Any = reading.value(variables[f"{prefix_of(str(place))}_SECURITY_PROTOCOL"])
    mechanism: Any = reading.value(variables[f"{prefix_of(str(place))}_SASL_MECHANISM"])
    oauth, certificate = reading.build(OAuthSettings, place), _certificate(reading, place)
    by_key = not mechanism.by_token or (mechanism is SaslMechanism.OAUTHBEARER and not oauth.command)
    needless = () if protocol.authenticated and by_key else ("api_key", "api_secret")
    known |= {"protocol": protocol, "mechanism": mechanism, "certificate": certificate, "oauth": oauth}
    return reading.build(ClusterSettings, place, needless, **known)


def _certificate(reading: Reading, place: Place) -> ClientCertificate | None:
    """Our certificate with its key, or None; one without the other is a fault."""
    own = reading.build(ClientCertificate, place)
    if bool(own.file) != bool(own.key):
        names = " and ".join(f"{prefix_of(str(place))}_SSL_{name}_FILE" for name in ("CERTIFICATE", "KEY"))
        reading.faults.append(f"{names}: expected both files, or neither")
    return own if own.file and own.key else None


def _topics(reading: Reading) -> TopicSettings:
    naming: TopicNaming = reading.of_name("REPLICA_TOPICS_NAMING")
    return reading.build(TopicSettings, None, naming.needless, naming=naming)


def _tunnel(
    reading: Reading, source: ClusterSettings, destination_id: str, patterns: tuple[TargetPattern, ...]
) -> TunnelSettings:
    port, files = reading.of_name("TUNNEL_PORT"), _certificate_files(reading)
    (server, ssh), *others = _source_vms(reading, port)
    # The source VM's own sshd dials the tunnel server on loopback: no other host needs to reach it then.
    is_own = all(through and is_itself(each.host) for each, through in ((server, ssh), *others))
    by_default = "0.0.0.0" if not is_own else server.host if is_ip_literal(server.host) else "127.0.0.1"
    return reading.build(
        TunnelSettings,
        source_id=source.cluster_id,
        destination_id=destination_id,
        secret=reading.of_name("SHARED_SECRET", more=_BESIDE_FILES if files else ""),
        files=files,
        ssh=ssh,
        server=server,
        others=tuple(others),
        listen=Target(reading.of_name("TUNNEL_LISTEN") or by_default, port),
        allowed=AllowedTargets(source.bootstrap, patterns),
    )


def _certificate_files(reading: Reading) -> CertificateFiles | None:
    """The three certificate files, or None; one or two of them are a fault."""
    files = reading.build(CertificateFiles)
    paths = (files.authority, files.certificate, files.key)
    if any(paths) and not all(paths):
        names = ", ".join(variable.name for variable in declared_within(CertificateFiles))
        reading.faults.append(f"{names}: expected all three files, or none")
    return files if all(paths) else None


def _source_vms(reading: Reading, port: int) -> list[tuple[Target, SshSettings | None]]:
    """Each source VM as it is dialled, with the SSH server on the way: one for all, or one for each."""
    hosts, servers = reading.of_name("SOURCE_SIDE_TUNNEL_IP") or ("",), _ssh(reading) or (None,)
    count = max(len(hosts), len(servers))
    pairs = [*zip(hosts * count, servers * count, strict=False)][:count]
    if {len(hosts), len(servers)} - {1, count} or len({*pairs}) < count:
        shown = f"SOURCE_SIDE_TUNNEL_IP={','.join(hosts)}"
        reading.faults.append(f"{shown}: expected each address once, and one TUNNEL_SSH for all or one for each")
    return [(Target("127.0.0.1" if ssh and ssh.login.server.host == host else host, port), ssh) for host, ssh in pairs]


def _ssh(reading: Reading) -> tuple[SshSettings, ...]:
    logins, files = reading.of_name("TUNNEL_SSH"), reading.build(KeyFiles)
    if logins and reading.role & Role.DESTINATION and not (files.key and files.host_keys):
        expected = "TUNNEL_SSH_KEY_FILE and TUNNEL_SSH_HOST_KEYS_FILE"
        reading.faults.append(f"TUNNEL_SSH={','.join(map(str, logins))}: expected with it {expected}")
    return tuple(SshSettings(each, KeyFiles(files.key or Path(), files.host_keys or Path())) for each in logins)
