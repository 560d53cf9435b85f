"""From the environment to the settings: every value, or every fault."""

import os.path
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from appliance.errors import SettingsError
from appliance.settings import variables
from appliance.settings.cross_checks import cross_check
from appliance.settings.private_file import read_secret
from appliance.settings.role import Role
from appliance.settings.secret import Secret
from appliance.settings.target import AllowedTargets, Target, is_ip_literal, is_itself
from appliance.settings.values import (
    CertificateFiles,
    ClusterSettings,
    ConsoleSettings,
    DnsSettings,
    EngineSettings,
    KeyFiles,
    LogSettings,
    SecretFile,
    Settings,
    Side,
    SshSettings,
    TopicSettings,
    TunnelSettings,
)
from appliance.settings.variable import Variable

_T = TypeVar("_T")

_BESIDE_FILES = "; certificates of your own no longer take its place, since it proves the first flight"


def parse(environment: Mapping[str, str], role: Role) -> Settings:
    """The settings of ``role``; variables that it does not need may be absent, but are checked where they are given.

    Raises:
        SettingsError: with all faults, each ``VARIABLE=value: what is expected``.
    """
    reading = _Reading(environment, role)
    settings = _settings(reading)
    faults = _gone(environment) + reading.faults + cross_check(settings, role)
    if faults:
        raise SettingsError(faults)
    return settings


def _gone(environment: Mapping[str, str]) -> list[str]:
    return [f"{name}: gone: {instead}" for name, instead in variables.GONE.items() if environment.get(name, "").strip()]


class _Reading:
    """One pass over the environment; a faulty value is noted and replaced, so that the pass goes on to the next."""

    def __init__(self, environment: Mapping[str, str], role: Role) -> None:
        self._environment = environment
        self.role = role
        self.faults: list[str] = []
        self.files: list[SecretFile] = []

    def value(self, variable: Variable[_T], *, wanted: bool = True, more: str = "") -> _T:
        """The value of ``variable``; it may be absent where it has a default, or the role or ``wanted`` says so.

        ``more`` is said after the reason where it is missing.
        """
        text = self._secret(variable) if variable.confidential else self._environment.get(variable.name, "").strip()
        if text is None:
            return variable.absent
        if not text:
            if variable.required and wanted and variable.roles & self.role:
                self.faults.append(f"{variable.name}: missing: {variable.reason}{more}")
            return variable.absent
        try:
            return variable.parse(text)
        except ValueError as error:
            self.faults.append(f"{_shown(variable, text)}: {error}")
            return variable.absent

    def _secret(self, variable: Variable[_T]) -> str | None:
        """The text, or what is in its file, which is not opened where the role does not need it; None for a fault."""
        name, file_name = variable.names
        text, file = self._environment.get(name, ""), self._environment.get(file_name, "").strip()
        if not file:
            return text
        if text:
            self.faults.append(f"{name}, {file_name}: expected one of them, not both")
            return None
        if not variable.roles & self.role:
            return ""
        try:
            text = _read_absolute(file)
        except ValueError as error:
            self.faults.append(_file_fault(name, file_name, file, error))
            return None
        self.files.append(SecretFile(name, Path(file), Secret(text)))
        return text


def _read_absolute(file: str) -> str:
    """A relative path would be another one in a container and on a Spark executor."""
    if not os.path.isabs(file):
        raise ValueError("expected the absolute path of a file")
    return read_secret(Path(file))


def _file_fault(name: str, file_name: str, file: str, error: ValueError) -> str:
    """It shows the path of a file that exists, and no other: that may be the secret itself."""
    if os.path.isabs(file) and os.path.lexists(file):
        return f"{file_name}={_printable(file)}: {error}"
    cause = "no such file" if os.path.isabs(file) and not isinstance(error.__cause__, PermissionError) else error
    return f"{file_name}: {cause} (if it is the secret itself, give it as {name})"


def _shown(variable: Variable[object], text: str) -> str:
    if variable.confidential:
        return variable.name
    return f"{variable.name}={_printable(text)}"


def _printable(text: str) -> str:
    return text if text.isprintable() else repr(text)


def _settings(reading: _Reading) -> Settings:
    source = _cluster(reading, Side.SOURCE, variables.SOURCE)
    destination = _cluster(reading, Side.DESTINATION, variables.DESTINATION)
    return Settings(
        replicator=f"replicator-{source.cluster_id}",
        source=source,
        destination=destination,
        route=reading.value(variables.SOURCE_ROUTE),
        topics=_topics(reading),
        tunnel=_tunnel(reading, source, destination),
        dns=DnsSettings(reading.value(variables.DNS_LISTEN), reading.value(variables.DNS_UPSTREAM)),
        engine=_engine(reading),
        console=ConsoleSettings(reading.value(variables.CONSOLE_LISTEN)),
        log=LogSettings(reading.value(variables.LOG_FORMAT), reading.value(variables.LOG_LEVEL)),
        secret_files=tuple(reading.files),
    )


def _cluster(reading: _Reading, side: Side, cluster: variables.ClusterVariables) -> ClusterSettings:
    protocol = reading.value(cluster.security_protocol)
    return ClusterSettings(
        side=side,
        cluster_id=reading.value(cluster.cluster_id),
        bootstrap=reading.value(cluster.broker_servers),
        protocol=protocol,
        mechanism=reading.value(cluster.sasl_mechanism),
        api_key=reading.value(cluster.api_key, wanted=protocol.authenticated),
        api_secret=reading.value(cluster.api_secret, wanted=protocol.authenticated),
        ca_file=reading.value(cluster.ca_file),
    )


def _tunnel(reading: _Reading, source: ClusterSettings, destination: ClusterSettings) -> TunnelSettings:
    port = reading.value(variables.TUNNEL_PORT)
    host = reading.value(variables.SOURCE_SIDE_TUNNEL_IP)
    files = _certificate_files(reading)
    ssh = _ssh(reading)
    if ssh and ssh.login.server.host == host:
        host = "127.0.0.1"
    # Where the source VM's own sshd dials the tunnel server, which nobody else needs to reach then.
    by_default = "0.0.0.0" if ssh is None or not is_itself(host) else host if is_ip_literal(host) else "127.0.0.1"
    return TunnelSettings(
        source_id=source.cluster_id,
        destination_id=destination.cluster_id,
        secret=reading.value(variables.SHARED_SECRET, more=_BESIDE_FILES if files else ""),
        previous_secret=reading.value(variables.SHARED_SECRET_PREVIOUS),
        files=files,
        ssh=ssh,
        server=Target(host, port),
        listen=Target(reading.value(variables.TUNNEL_LISTEN) or by_default, port),
        peer_address=reading.value(variables.DESTINATION_SIDE_TUNNEL_IP),
        allowed=AllowedTargets(source.bootstrap, reading.value(variables.SOURCE_BROKER_PATTERN)),
        resolver=reading.value(variables.TUNNEL_RESOLVER),
        broker_networks=reading.value(variables.TUNNEL_BROKER_NETWORKS),
        endpoint_network=reading.value(variables.TUNNEL_ENDPOINT_NETWORK),
        connections_max=reading.value(variables.TUNNEL_CONNECTIONS_MAX),
        idle_seconds=reading.value(variables.TUNNEL_IDLE_SECONDS),
        status=reading.value(variables.TUNNEL_STATUS_LISTEN),
    )


def _certificate_files(reading: _Reading) -> CertificateFiles | None:
    """All three, or none."""
    named = (variables.TUNNEL_AUTHORITY_FILE, variables.TUNNEL_CERTIFICATE_FILE, variables.TUNNEL_KEY_FILE)
    authority, certificate, key = (reading.value(variable) for variable in named)
    if authority and certificate and key:
        return CertificateFiles(authority, certificate, key)
    if authority or certificate or key:
        names = ", ".join(variable.name for variable in named)
        reading.faults.append(f"{names}: expected all three files, or none")
    return None


def _ssh(reading: _Reading) -> SshSettings | None:
    login = reading.value(variables.TUNNEL_SSH)
    key, host_keys = (
        reading.value(variable) for variable in (variables.TUNNEL_SSH_KEY_FILE, variables.TUNNEL_SSH_HOST_KEYS_FILE)
    )
    if not login:
        return None
    if reading.role & Role.DESTINATION and not (key and host_keys):
        expected = "TUNNEL_SSH_KEY_FILE and TUNNEL_SSH_HOST_KEYS_FILE"
        reading.faults.append(f"TUNNEL_SSH={login}: expected with it {expected}")
    return SshSettings(login, KeyFiles(key or Path(), host_keys or Path()))


def _topics(reading: _Reading) -> TopicSettings:
    return TopicSettings(
        regex=reading.value(variables.REPLICA_TOPICS_SOURCE_REGEX),
        exclude_regex=reading.value(variables.REPLICA_TOPICS_EXCLUDE_REGEX),
        suffix=reading.value(variables.REPLICA_TOPICS_DEST_SUFFIX),
        start=reading.value(variables.REPLICA_TOPICS_START),
        replication_factor=reading.value(variables.REPLICATION_FACTOR),
    )


def _engine(reading: _Reading) -> EngineSettings:
    return EngineSettings(
        lanes=reading.value(variables.LANES),
        tasks=reading.value(variables.TASKS),
        slice_seconds=reading.value(variables.SLICE_SECONDS),
        discovery_seconds=reading.value(variables.DISCOVERY_SECONDS),
        commit_interval=reading.value(variables.COMMIT_INTERVAL_MS) / 1000,
        commit_bytes=reading.value(variables.COMMIT_BYTES),
        transaction_timeout=reading.value(variables.TRANSACTION_TIMEOUT_SECONDS),
        on_gap=reading.value(variables.ON_GAP),
        spark_master=reading.value(variables.SPARK_MASTER),
        spark_driver_memory=reading.value(variables.SPARK_DRIVER_MEMORY),
        spark_secret=reading.value(variables.SPARK_AUTHENTICATE_SECRET),
        spark_driver_host=reading.value(variables.SPARK_DRIVER_HOST),
        spark_driver_port=reading.value(variables.SPARK_DRIVER_PORT),
        max_bytes_per_second=reading.value(variables.MAX_BYTES_PER_SECOND),
    )
