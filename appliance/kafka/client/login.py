"""Log in on an open connection: agree on API versions, do SASL, and do it again before the session ends.

A broker may limit the time of a session (KIP-368, ``connections.max.reauth.ms``), and then ends the connection at the
next request. So the login is repeated on the same connection before; other requests wait meanwhile.
"""

import asyncio
import logging
import random
import ssl
import struct

from kio.schema.api_versions.v3 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse

from appliance.clock import loop_seconds
from appliance.errors import (
    ApplianceError,
    BrokerUnsupported,
    CertificateRefused,
    CredentialsRefused,
    IdentityRefused,
    PeerError,
)
from appliance.kafka.client.client_tls import ClientTls, certificate_remedy
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.dial import Accept, Resolve, accept_all, connect
from appliance.kafka.client.interface import TIMEOUTS, Timeouts
from appliance.kafka.client.token_fetch import fetch_of
from appliance.kafka.client.tokens import TokenSource
from appliance.kafka.protocol import sasl, versions
from appliance.kafka.protocol.wire import SIZE, TypedExchange
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings, SaslMechanism

log = logging.getLogger("appliance.kafka")

_SOFTWARE = "kafka-cloud-replicator"
_CODE = struct.Struct(">h")

_AGAIN_FROM, _AGAIN_TO = 0.65, 0.8
"""Part of a session's time after which the login is repeated: at random, so that connections do not do it together."""

_AGAIN_MIN = 1.1
"""Seconds between two logins on a connection, at least: brokers refuse two within a second."""

_RETRY = 1.0
"""Seconds until a token that could not be had is asked for again."""


class Login:
    """The login to one cluster: certificates that are read again when their files change, and the newest token."""

    def __init__(self, cluster: ClusterSettings) -> None:
        self.cluster = cluster
        self._tls = ClientTls(cluster)
        self._tokens = TokenSource(fetch_of(cluster)) if cluster.mechanism.by_token else None

    async def close(self) -> None:
        """End a request for a token that is under way."""
        if self._tokens is not None:
            await self._tokens.close()

    def tls(self) -> ssl.SSLContext | None:
        """The TLS context of a new connection, as ``ClientTls.context``."""
        return self._tls.context()

    async def authenticate(self, connection: BrokerConnection) -> None:
        """Log in by SASL, and keep the connection logged in until it ends.

        Raises:
            CredentialsRefused: the broker does not accept the API key or the token, or does not offer the mechanism.
            TokenUnavailable: there is no token to log in with.
        """
        seconds = await self._converse(connection, await self._conversation())
        if seconds:
            keeping = self._authenticate_again(connection, seconds)
            connection.while_open(asyncio.create_task(keeping, name=f"login at {connection.target}"))

    async def _authenticate_again(self, connection: BrokerConnection, seconds: float) -> None:
        """Repeat the login before each session ends; without success, the connection ends."""
        loop = asyncio.get_running_loop()
        while connection.open and seconds:
            ends = loop.time() + seconds
            await asyncio.sleep(max(_AGAIN_MIN, seconds * random.uniform(_AGAIN_FROM, _AGAIN_TO)))
            try:
                conversation = await self._conversation_until(ends, seconds)
                async with connection.alone():
                    seconds = await self._converse(connection, conversation)
            except ApplianceError as error:
                connection.abandon(f"could not be logged in again: {error}")

    async def _conversation_until(self, ends: float, seconds: float) -> sasl.Tokens:
        """The conversation of a login for as many seconds; a token is asked for until the session ends."""
        has_warned = False
        while True:
            try:
                return await self._conversation(seconds)
            except ApplianceError as error:
                if not error.retriable or loop_seconds() + _RETRY > ends:
                    raise
                if not has_warned:
                    log.warning("no token for the next login", extra={"fields": {"cause": str(error)}})
                has_warned = True
            await asyncio.sleep(_RETRY)

    async def _conversation(self, seconds: float = 0.0) -> sasl.Tokens:
        cluster = self.cluster
        if self._tokens is None:
            return sasl.tokens(cluster.mechanism, cluster.api_key, cluster.api_secret)
        return sasl.bearer(await self._tokens.token(seconds), cluster.oauth.extensions)

    async def _converse(self, connection: BrokerConnection, conversation: sasl.Tokens) -> float:
        """Log in, and give the seconds of the session; 0: it has no end."""
        cluster = self.cluster
        request = SaslHandshakeRequest(mechanism=cluster.mechanism.on_the_wire)
        handshake = await connection.call(request, SaslHandshakeResponse)
        if handshake.error_code is not ErrorCode.none:
            raise CredentialsRefused(
                f"{cluster.variable('SASL_MECHANISM')}={cluster.mechanism}: {connection.target} offers "
                f"{', '.join(handshake.mechanisms)}"
            )
        try:
            return await _exchange(connection, conversation)
        except CredentialsRefused as error:
            if self._tokens is not None:
                self._tokens.forget()
            whose, remedy = f"the {cluster.place} cluster refuses", _remedy(cluster)
            raise CredentialsRefused(f"{whose} {cluster.login}: {remedy} ({error})") from error


def _remedy(cluster: ClusterSettings) -> str:
    if not cluster.mechanism.by_token:
        return f"check it and {cluster.variable('API_SECRET')}"
    if cluster.mechanism is SaslMechanism.AWS_MSK_IAM:
        return f"check that the identity of the AWS credentials may connect, and {cluster.variable('AWS_REGION')}"
    names = "OAUTH_TOKEN_COMMAND" if cluster.oauth.command else "OAUTH_TOKEN_URL"
    return f"check the token of {cluster.variable(names)}, and this host's clock"


async def _exchange(connection: BrokerConnection, conversation: sasl.Tokens) -> float:
    token = next(conversation)
    while True:
        answer = await connection.call(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
        if answer.error_code is not ErrorCode.none:
            raise CredentialsRefused(f"{connection.target}: {answer.error_message or answer.error_code.name}")
        try:
            token = conversation.send(answer.auth_bytes)
        except StopIteration:
            return max(answer.session_lifetime.total_seconds(), 0.0)
        except PeerError as error:
            raise PeerError(f"{connection.target}: {error}") from error


async def open_session(
    target: Target,
    login: Login,
    resolve: Resolve,
    client_id: str,
    timeouts: Timeouts = TIMEOUTS,
    accept: Accept = accept_all,
) -> BrokerConnection:
    """A connection to one broker of the cluster, logged in.

    Raises:
        IdentityRefused: its certificate is not accepted, or it does not accept ours.
        CredentialsRefused: it does not accept the API key, or the token.
        TokenUnavailable: there is no token to log in with.
        BrokerUnsupported: it is too old.
    """
    cluster = login.cluster
    try:
        connection = await connect(target, resolve, client_id, login.tls(), timeouts, accept)
        await _log_in(connection, login)
    except CertificateRefused as error:
        raise CertificateRefused(f"{error}: {certificate_remedy(cluster)}") from error
    except IdentityRefused as error:
        raise IdentityRefused(f"{error}: check {cluster.variable('CA_FILE')}") from error
    except PeerError as error:
        variable = cluster.variable("SECURITY_PROTOCOL")
        raise PeerError(f"{error}: check {variable}={cluster.protocol}") from error
    return connection


async def _log_in(connection: BrokerConnection, login: Login) -> None:
    try:
        await agree_versions(connection, login.cluster)
        if login.cluster.protocol.authenticated:
            await login.authenticate(connection)
    except BaseException:
        await connection.close()
        raise


async def agree_versions(connection: BrokerConnection, cluster: ClusterSettings) -> None:
    """Ask which API versions the broker offers.

    Raises:
        BrokerUnsupported: it lacks one that its side needs.
    """
    request = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="1")
    response = await connection.ask(_Versions(request, ApiVersionsResponse))
    offered = {int(key.api_key): (key.min_version, key.max_version) for key in response.api_keys} if response else {}
    lacking = versions.missing(offered, cluster.side) if response else [f"ApiVersions {request.__version__}"]
    if lacking:
        raise BrokerUnsupported(
            f"{connection.target} of the {cluster.place} cluster is too old a broker: it lacks {', '.join(lacking)}; "
            "2.8 is needed"
        )
    connection.offered = offered


class _Versions(TypedExchange[ApiVersionsResponse]):
    """An exchange as ``TypedExchange``, with None as the answer of a broker that does not know the request.

    It answers in version 0, whatever the request's version (KIP-511): with the code first, like every version.
    """

    def answer(self, frame: bytearray, correlation: int) -> ApiVersionsResponse | None:  # type: ignore[override]
        if frame[SIZE.size :][: _CODE.size] == _CODE.pack(ErrorCode.unsupported_version.value):
            return None
        return super().answer(frame, correlation)
