"""Parse the environment into settings, or into a list of all faults."""

import dataclasses
import os.path
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from appliance.errors import SettingsError
from appliance.output import printable
from appliance.settings.cross_checks import cross_check
from appliance.settings.logins import ClientCertificate, OAuthSettings
from appliance.settings.one_topic import with_one_topic
from appliance.settings.parsers import utf8, without_login
from appliance.settings.private_files import read_secret
from appliance.settings.role import Role, Side
from appliance.settings.secret import Secret
from appliance.settings.target import AllowedTargets, Target, TargetPattern, is_ip_literal, is_itself
from appliance.settings.values import (
    CertificateFiles,
    ClusterSettings,
    KeyFiles,
    SaslMechanism,
    SecretFile,
    SecurityProtocol,
    Settings,
    SshSettings,
    TopicNaming,
    TopicSettings,
    TunnelSettings,
)
from appliance.settings.variable import Variable, declared, declared_within
from appliance.settings.variables import BY_NAME, removed_faults

_T = TypeVar("_T")

_BESIDE_FILES = "; certificates of your own no longer take its place, since it proves the first flight"


def parse(environment: Mapping[str, str], role: Role) -> Settings:
    """The settings of ``role``; variables that it does not need may be absent, but are checked where they are given.

    Raises:
        SettingsError: with all faults, each ``VARIABLE=value: what is expected``.
    """
    environment, faults = with_one_topic(environment)
    reading = _Reading(environment, role)
    settings = _settings(reading)
    wrong = {fault.partition("=")[0] for fault in reading.faults}  # and so not missing too
    crossed = [fault for fault in cross_check(settings, role) if fault.partition(": missing")[0] not in wrong]
    faults += removed_faults(environment) + reading.faults + crossed
    if faults:
        raise SettingsError(list(map(printable, faults)))
    return settings


class _Reading:
    """One pass over the environment. A faulty value is noted and replaced, so that all faults are found."""

    def __init__(self, environment: Mapping[str, str], role: Role) -> None:
        self._environment = environment
        self.role = role
        self.faults: list[str] = []
        self.files: list[SecretFile] = []

    def build(self, kind: type[_T], side: Side | None = None, needless: Collection[str] = (), /, **ready: Any) -> _T:
        """An instance of a dataclass: the ``ready`` fields, and for the others the values of their variables.

        A field that is a dataclass is built too. ``side`` is the cluster's; the ``needless`` fields may be absent in
        every role.
        """
        values = dict(ready)
        for field in dataclasses.fields(cast("type[Any]", kind)):
            if field.name in ready:
                continue
            if variables := declared(field, side):
                values[field.name] = self.value(*variables, needed=field.name not in needless)
            elif dataclasses.is_dataclass(field.type):
                values[field.name] = self.build(cast("type[Any]", field.type), side)
        return kind(**values)

    def of_name(self, name: str, *, more: str = "") -> Any:
        """The value of the variable of that name, as ``value``; for fields that are made from several variables."""
        return self.value(BY_NAME[name], more=more)

    def value(self, variable: Variable[_T], *, needed: bool = True, more: str = "") -> _T:
        """The value of ``variable``; it may be absent where it has a default, or the role or ``needed`` says so.

        ``more`` follows the purpose where it is missing.
        """
        text = self._secret(variable) if variable.confidential else self._environment.get(variable.name, "").strip()
        if text is None:
            return variable.absent
        if not text:
            if variable.required and needed and variable.roles & self.role:
                self.faults.append(f"{variable.name}: missing: {variable.purpose}{more}")
            return variable.absent
        try:
            utf8(text)
            return variable.parse(text if variable.confidential else without_login(text))
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
    """Show the path of a file that exists, and no other: that may be the secret itself."""
    if os.path.isabs(file) and os.path.lexists(file):
        return f"{file_name}={file}: {error}"
    cause = "no such file" if os.path.isabs(file) and not isinstance(error.__cause__, PermissionError) else error
    return f"{file_name}: {cause} (if it is the secret itself, give it as {name})"


def _shown(variable: Variable[object], text: str) -> str:
    if variable.confidential:
        return variable.name
    return f"{variable.name}={variable.shown(text)}"


def _settings(reading: _Reading) -> Settings:
    source, destination = _cluster(reading, Side.SOURCE), _cluster(reading, Side.DESTINATION)
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


def _cluster(reading: _Reading, side: Side) -> ClusterSettings:
    protocol: SecurityProtocol = reading.of_name(f"{side.upper()}_SECURITY_PROTOCOL")
    mechanism: SaslMechanism = reading.of_name(f"{side.upper()}_SASL_MECHANISM")
    oauth, certificate = reading.build(OAuthSettings, side), _certificate(reading, side)
    by_key = not mechanism.by_token or (mechanism is SaslMechanism.OAUTHBEARER and not oauth.command)
    needless = () if protocol.authenticated and by_key else ("api_key", "api_secret")
    ready = {"protocol": protocol, "mechanism": mechanism, "certificate": certificate, "oauth": oauth}
    return reading.build(ClusterSettings, side, needless, side=side, **ready)


def _certificate(reading: _Reading, side: Side) -> ClientCertificate | None:
    """Our certificate with its key, or None; one without the other is a fault."""
    own = reading.build(ClientCertificate, side)
    if bool(own.file) != bool(own.key):
        names = " and ".join(f"{side.upper()}_SSL_{name}_FILE" for name in ("CERTIFICATE", "KEY"))
        reading.faults.append(f"{names}: expected both files, or neither")
    return own if own.file and own.key else None


def _topics(reading: _Reading) -> TopicSettings:
    naming: TopicNaming = reading.of_name("REPLICA_TOPICS_NAMING")
    return reading.build(TopicSettings, None, naming.needless, naming=naming)


def _tunnel(
    reading: _Reading, source: ClusterSettings, destination_id: str, patterns: tuple[TargetPattern, ...]
) -> TunnelSettings:
    port, host = reading.of_name("TUNNEL_PORT"), reading.of_name("SOURCE_SIDE_TUNNEL_IP")
    files, ssh = _certificate_files(reading), _ssh(reading)
    if ssh and ssh.login.server.host == host:
        host = "127.0.0.1"
    # The source VM's own sshd dials the tunnel server on loopback: no other host needs to reach it then.
    by_default = "0.0.0.0" if ssh is None or not is_itself(host) else host if is_ip_literal(host) else "127.0.0.1"
    return reading.build(
        TunnelSettings,
        source_id=source.cluster_id,
        destination_id=destination_id,
        secret=reading.of_name("SHARED_SECRET", more=_BESIDE_FILES if files else ""),
        files=files,
        ssh=ssh,
        server=Target(host, port),
        listen=Target(reading.of_name("TUNNEL_LISTEN") or by_default, port),
        allowed=AllowedTargets(source.bootstrap, patterns),
    )


def _certificate_files(reading: _Reading) -> CertificateFiles | None:
    """The three certificate files, or None; one or two of them are a fault."""
    files = reading.build(CertificateFiles)
    paths = (files.authority, files.certificate, files.key)
    if any(paths) and not all(paths):
        names = ", ".join(variable.name for variable in declared_within(CertificateFiles))
        reading.faults.append(f"{names}: expected all three files, or none")
    return files if all(paths) else None


def _ssh(reading: _Reading) -> SshSettings | None:
    login, files = reading.of_name("TUNNEL_SSH"), reading.build(KeyFiles)
    if not login:
        return None
    if reading.role & Role.DESTINATION and not (files.key and files.host_keys):
        expected = "TUNNEL_SSH_KEY_FILE and TUNNEL_SSH_HOST_KEYS_FILE"
        reading.faults.append(f"TUNNEL_SSH={login}: expected with it {expected}")
    return SshSettings(login, KeyFiles(files.key or Path(), files.host_keys or Path()))
