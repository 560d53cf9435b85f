"""Log in on an open connection: prepare TLS, agree on API versions, do SASL."""

import ssl
import struct

from kio.schema.api_versions.v3 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse

from appliance.errors import BrokerUnsupported, CredentialsRefused, IdentityRefused, PeerError, SettingsError
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.dial import Resolve, connect
from appliance.kafka.client.interface import TIMEOUTS, Timeouts
from appliance.kafka.protocol import sasl, versions
from appliance.kafka.protocol.wire import SIZE, Typed
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings, Side

_SOFTWARE = "kafka-cloud-replicator"
_CODE = struct.Struct(">h")


def tls_context(cluster: ClusterSettings) -> ssl.SSLContext | None:
    """The TLS context that checks the cluster's certificates; None without TLS.

    Raises:
        SettingsError: the CA file cannot be read as certificates.
    """
    if not cluster.protocol.encrypted:
        return None
    try:
        return ssl.create_default_context(cafile=cluster.ca_file)
    except (OSError, ssl.SSLError) as error:
        variable = cluster.variable("CA_FILE")
        raise SettingsError([f"{variable}={cluster.ca_file}: expected a PEM file of certificates: {error}"]) from error


async def open_session(
    target: Target,
    cluster: ClusterSettings,
    resolve: Resolve,
    client_id: str,
    tls: ssl.SSLContext | None,
    timeouts: Timeouts = TIMEOUTS,
) -> BrokerConnection:
    """A connection to one broker of the cluster, logged in.

    Raises:
        Unreachable: it does not answer.
        IdentityRefused: its certificate is not accepted.
        PeerError: the peer is not secured as the settings require.
        CredentialsRefused: it does not accept the API key.
        BrokerUnsupported: it is too old.
    """
    try:
        connection = await connect(target, resolve, client_id, tls, timeouts)
        await _log_in(connection, cluster)
    except IdentityRefused as error:
        raise IdentityRefused(f"{error}: check {cluster.variable('CA_FILE')}") from error
    except PeerError as error:
        variable = cluster.variable("SECURITY_PROTOCOL")
        raise PeerError(f"{error}: check {variable}={cluster.protocol}") from error
    return connection


async def _log_in(connection: BrokerConnection, cluster: ClusterSettings) -> None:
    try:
        await agree_versions(connection, cluster.side)
        if cluster.protocol.authenticated:
            await authenticate(connection, cluster)
    except BaseException:
        await connection.close()
        raise


async def agree_versions(connection: BrokerConnection, side: Side) -> None:
    """Ask which API versions the broker offers.

    Raises:
        BrokerUnsupported: it lacks one that its side needs.
    """
    request = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="1")
    response = await connection.ask(_Versions(request, ApiVersionsResponse))
    offered = {int(key.api_key): (key.min_version, key.max_version) for key in response.api_keys} if response else {}
    lacking = versions.missing(offered, side) if response else [f"ApiVersions {request.__version__}"]
    if lacking:
        raise BrokerUnsupported(
            f"{connection.target} of the {side} cluster is too old a broker: it lacks {', '.join(lacking)}; "
            "2.8 is needed"
        )
    connection.offered = offered


class _Versions(Typed[ApiVersionsResponse]):
    """An exchange as ``Typed``, with None as the answer of a broker that does not know the request.

    It answers in version 0, whatever the request's version (KIP-511): with the code first, like every version.
    """

    def answer(self, frame: bytearray, correlation: int) -> ApiVersionsResponse | None:  # type: ignore[override]
        if frame[SIZE.size :][: _CODE.size] == _CODE.pack(ErrorCode.unsupported_version.value):
            return None
        return super().answer(frame, correlation)


async def authenticate(connection: BrokerConnection, cluster: ClusterSettings) -> None:
    """Log in by SASL.

    Raises:
        CredentialsRefused: it does not accept the API key, or does not offer the mechanism.
    """
    handshake = await connection.call(SaslHandshakeRequest(mechanism=cluster.mechanism.value), SaslHandshakeResponse)
    if handshake.error_code is not ErrorCode.none:
        raise CredentialsRefused(
            f"{cluster.variable('SASL_MECHANISM')}={cluster.mechanism}: {connection.target} offers "
            f"{', '.join(handshake.mechanisms)}"
        )
    try:
        await _converse(connection, cluster)
    except CredentialsRefused as error:
        raise CredentialsRefused(
            f"the {cluster.side} cluster refuses {cluster.variable('API_KEY')}={cluster.api_key}: check it and "
            f"{cluster.variable('API_SECRET')} ({error})"
        ) from error


async def _converse(connection: BrokerConnection, cluster: ClusterSettings) -> None:
    conversation = sasl.tokens(cluster.mechanism, cluster.api_key, cluster.api_secret)
    token = next(conversation)
    while True:
        answer = await connection.call(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
        if answer.error_code is not ErrorCode.none:
            raise CredentialsRefused(f"{connection.target}: {answer.error_message or answer.error_code.name}")
        try:
            token = conversation.send(answer.auth_bytes)
        except StopIteration:
            return
