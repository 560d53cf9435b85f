"""The checks of every broker of one cluster, step by step: name, TCP, TLS, SASL, API versions, and its id."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from appliance.clock import utc_now
from appliance.doctor.step import Finding, Remedies, failed, passed, remedy_of, skipped, warning
from appliance.errors import (
    ApplianceError,
    BrokerUnsupported,
    CertificateRefused,
    CredentialsRefused,
    IdentityRefused,
    NameUnresolved,
    PeerError,
    TlsRefused,
    TokenUnavailable,
    Unreachable,
)
from appliance.kafka.client.client_tls import ClientTls, certificate_remedy, own_certificate
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.dial import Accept, Resolve, connect
from appliance.kafka.client.login import Login, agree_versions
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.protocol.metadata import NOBODY
from appliance.kafka.protocol.versions import NEEDED
from appliance.listing import some
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings, SaslMechanism
from appliance.tls.certificates import days_left
from appliance.tls.identity import DAYS_WARNING

METADATA_SECONDS = 15.0
"""Seconds that the cluster may take to list its brokers; after that, those of the settings are tried."""
AT_ONCE = 16
"""Brokers that are checked at the same time."""

_OF_ANOTHER = "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"
_LEADERS_MOVE = 0.0, 0.5, 1.0
"""Pauses before each of the looks at the leaders, in seconds: some may move meanwhile."""
_ADVERTISE = "give each broker a name or port of its own in advertised.listeners, that leads to this broker alone"
_WRONG_NAME = 62
_NOT_YET_VALID, _EXPIRED = 9, 10

RemoteDial = Callable[[Target], Awaitable[None]]
"""Makes the other end of the tunnel dial a broker; raises the error if it fails."""


@dataclass(frozen=True, slots=True)
class BrokerPath:
    """The path from this VM to the brokers.

    ``resolve`` finds their addresses, ``accept`` refuses those that may not be dialled,
    ``remote_dial`` is None where there is no tunnel between. ``names``, ``near`` and ``beyond`` are the remedies when a
    name, a connection from here, or one through the tunnel fails.
    """

    resolve: Resolve
    accept: Accept
    names: Remedies
    near: Remedies
    remote_dial: RemoteDial | None = None
    beyond: Remedies = ()


class BrokerChecks:
    """Checks all brokers of a cluster at once, one step after the other.

    If this VM ``relays_only`` connections, checks that it cannot make are not failures here.
    """

    def __init__(self, cluster: KafkaCluster, path: BrokerPath, client_id: str, relays_only: bool = False) -> None:
        self.cluster = cluster
        self.brokers: tuple[Target, ...] = ()
        self._settings = cluster.settings
        self._path = path
        self._client_id = client_id
        self._relays_only = relays_only
        self._login = Login(cluster.settings)
        self._lacks_certificate = False
        self._addresses: dict[str, Sequence[str]] = {}
        self._connections: dict[Target, BrokerConnection] = {}

    @property
    def logs_in(self) -> bool:
        """True when this VM can log in to the cluster."""
        return bool(self._settings.login) or not (self._settings.protocol.authenticated or self._lacks_certificate)

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            await connection.close()
        await self._login.close()
        await self.cluster.close()

    async def names(self) -> Finding:
        """Resolve every broker's name."""
        self.brokers, origin = await self._listed()
        detail = f"{some([str(target) for target in self.brokers])}: {origin}"
        return self._judged(await self._each(self._name), detail, self._path.names)

    async def tcp(self) -> Finding:
        """Open a TCP connection to every broker."""
        if self._path.remote_dial and (faults := await self._each(self._path.remote_dial)):
            return self._judged(faults, "", self._path.beyond)
        return self._judged(await self._each(self._dial), self._all("answered"), self._path.near)

    async def tls(self) -> Finding:
        """Check every broker's certificate: its names and its authority."""
        settings = self._settings
        if not settings.protocol.encrypted:
            return skipped(f"{settings.variable('SECURITY_PROTOCOL')}={settings.protocol}")
        faults = await self._each(self._open)
        if not faults:
            return self._own_certificate() or passed(self._all("with a certificate in its own name"))
        error = next(iter(faults.values()))
        finding = failed(some([str(fault) for fault in faults.values()]), _tls_remedy(error, settings))
        if self._relays_only and not self.logs_in:
            return warning(finding.detail, f"no fault here, this VM only passes connections on; {finding.remedy}")
        return finding

    def _own_certificate(self) -> Finding | None:
        """A warning when our certificate ends soon."""
        certificate = own_certificate(self._settings)
        days = days_left(certificate, utc_now()) if certificate else DAYS_WARNING
        if days >= DAYS_WARNING:
            return None
        remedy = (
            f"renew the files of {self._settings.variable('SSL_CERTIFICATE_FILE')} and its key: no restart is needed"
        )
        return warning(f"our certificate ends in {days:.0f} days", remedy)

    async def sasl(self) -> Finding:
        """Log in to every broker by SASL."""
        settings = self._settings
        if not settings.protocol.authenticated:
            return skipped(f"{settings.variable('SECURITY_PROTOCOL')}={settings.protocol}")
        if not self.logs_in:
            return skipped(f"{settings.variable('API_KEY')} is not set on this VM, which needs none")
        detail = self._all(f"accepted {settings.login} by {settings.mechanism}")
        return self._judged(await self._each(self._authenticate), detail, self._login_remedies())

    async def versions(self) -> Finding:
        """Ask every broker for its API versions, and compare them with those that we speak."""
        if self._relays_only and not self.logs_in and not self._connections:
            return skipped("no connection to ask on")
        detail = self._all(f"with all {len(NEEDED[self._settings.side])} APIs")
        faults = await self._each(self._agree)
        refused = any(isinstance(error, CertificateRefused) for error in faults.values())
        self._lacks_certificate = refused and self._relays_only and self._settings.certificate is None
        if self._lacks_certificate:
            return skipped("the brokers ask for a certificate, which this VM needs not have")
        return self._judged(faults, detail, self._login_remedies())

    async def ids(self) -> Finding:
        """Check that each broker answers at the address that it advertises: only its leader knows a partition's end."""
        if not self.logs_in:
            return skipped("a login is not set on this VM, which needs none")
        for pause in _LEADERS_MOVE:
            await asyncio.sleep(pause)
            metadata = await self.cluster.metadata(None)
            targets = list(metadata.brokers.values())
            if shared := [f"{node} at {to}" for node, to in metadata.brokers.items() if targets.count(to) > 1]:
                return failed(f"several brokers advertise one address: {some(shared)}", _ADVERTISE)
            topics = metadata.topics.values()
            led = {topic.leaders[each.number]: each for topic in topics for each in topic.partitions}
            led.pop(NOBODY, None)
            _, failures = await try_offsets(self.cluster, metadata, led.values(), Bound.END)
            wrong = [node for node, own in led.items() if getattr(failures.get(own), "code", "") in _OF_ANOTHER]
            if not wrong:
                return passed(f"{len(led)} of {len(targets)} lead partitions that are seen, and answer for them")
        others = some([f"{metadata.brokers[node]}, which is that of broker {node}" for node in wrong])
        return failed(f"another broker answers at {others}", _ADVERTISE)

    async def _listed(self) -> tuple[tuple[Target, ...], str]:
        """The brokers of live metadata and of the settings; the latter alone while the cluster does not answer."""
        named = self._settings.bootstrap
        if self.logs_in:
            try:
                async with asyncio.timeout(METADATA_SECONDS):
                    metadata = await self.cluster.metadata([])
                return tuple(dict.fromkeys([*metadata.brokers.values(), *named])), "live metadata"
            except (ApplianceError, TimeoutError):
                pass  # the steps that follow say why
        return named, f"{self._settings.variable('BROKER_SERVERS')} alone, the cluster tells nothing"

    async def _name(self, target: Target) -> None:
        self._path.accept(target, ())
        addresses = await self._path.resolve(target.host)
        self._path.accept(target, addresses)
        self._addresses[target.host] = addresses

    async def _dial(self, target: Target) -> None:
        connection = await connect(target, self._known_addresses, self._client_id, None)
        await connection.close()

    async def _open(self, target: Target) -> None:
        self._connections[target] = await connect(target, self._known_addresses, self._client_id, self._login.tls())

    async def _opened(self, target: Target) -> BrokerConnection:
        if target not in self._connections:
            await self._open(target)
        return self._connections[target]

    async def _authenticate(self, target: Target) -> None:
        await self._login.authenticate(await self._opened(target))

    async def _agree(self, target: Target) -> None:
        await agree_versions(await self._opened(target), self._settings)

    async def _known_addresses(self, host: str) -> Sequence[str]:
        return self._addresses[host]

    async def _each(self, work: Callable[[Target], Awaitable[None]]) -> dict[Target, ApplianceError]:
        """Run a check for every broker, and return the errors of those that failed."""
        gate = asyncio.Semaphore(AT_ONCE)
        faults: dict[Target, ApplianceError] = {}

        async def one(target: Target) -> None:
            async with gate:
                try:
                    await work(target)
                except ApplianceError as error:
                    faults[target] = error

        async with asyncio.TaskGroup() as group:
            for target in self.brokers:
                group.create_task(one(target), name=f"doctor at {target}")
        return {target: faults[target] for target in self.brokers if target in faults}

    def _judged(self, faults: dict[Target, ApplianceError], detail: str, remedies: Remedies) -> Finding:
        if not faults:
            return passed(detail)
        first = next(iter(faults.values()))
        return failed(some([str(error) for error in faults.values()]), remedy_of(first, remedies))

    def _all(self, what: str) -> str:
        return f"{len(self.brokers)} of {len(self.brokers)} {what}"

    def _login_remedies(self) -> Remedies:
        variable, protocol = self._settings.variable, self._settings.protocol
        secured = f"check that {variable('SECURITY_PROTOCOL')}={protocol} is how this port is secured"
        names = ["API_KEY", "API_SECRET", "SASL_MECHANISM"]
        if self._settings.mechanism is SaslMechanism.OAUTHBEARER:
            names.insert(0, "OAUTH_TOKEN_COMMAND" if self._settings.oauth.command else "OAUTH_TOKEN_URL")
        login = f"check {', '.join(map(variable, names[:-1]))} and {variable(names[-1])}"
        return (
            (CertificateRefused, certificate_remedy(self._settings)),
            (TokenUnavailable, login),
            (CredentialsRefused, login),
            (BrokerUnsupported, "have the brokers run Kafka 2.8 or newer"),
            (PeerError, secured),
            (Unreachable, secured),
        )


def _tls_remedy(error: ApplianceError, settings: ClusterSettings) -> str:
    if isinstance(error, CertificateRefused):
        return certificate_remedy(settings)
    cause = error.__cause__
    code = cause.verify_code if isinstance(cause, ssl.SSLCertVerificationError) else None
    if code == _WRONG_NAME:
        return (
            "the broker's certificate has other names: name it as its certificate does, in BROKER_SERVERS and listeners"
        )
    if code in (_NOT_YET_VALID, _EXPIRED):
        return "renew the broker's certificate, or set this VM's clock if that is wrong"
    if isinstance(error, TlsRefused):
        return (
            f"see what the broker logs of it; check its name in {settings.variable('BROKER_SERVERS')} and its listeners"
        )
    if isinstance(error, IdentityRefused):
        chosen = settings.ca_file or "the system's authorities"
        return f"name the authority that signed it in {settings.variable('CA_FILE')}; now it is {chosen}"
    return f"check that {settings.variable('SECURITY_PROTOCOL')}={settings.protocol} is how this port is secured"


def names_remedies(settings: ClusterSettings, resolver: str) -> Remedies:
    """Remedies for names that another resolver than ours does not know."""
    return (
        (NameUnresolved, f"check {settings.variable('BROKER_SERVERS')}, and that {resolver} knows the brokers"),
        (Unreachable, f"{resolver} does not answer"),
    )


def check_authorities(*clusters: ClusterSettings) -> None:
    """Read the files of authorities, as the connections will."""
    for settings in clusters:
        ClientTls(settings).context()
