"""Fetch a token for OAUTHBEARER: from a token endpoint, from a command, or signed with AWS credentials.

What an endpoint or a command says is never part of an error or a log line: a token may be in it.
"""

import asyncio
import base64
import contextlib
import json
import os
import signal
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from appliance.clock import epoch_seconds
from appliance.errors import CredentialsRefused, TokenUnavailable
from appliance.kafka.client.client_tls import trusting
from appliance.kafka.client.tokens import Token, token_of
from appliance.settings.secret import Secret
from appliance.settings.values import ClusterSettings, SaslMechanism

_SECONDS = 30.0
"""Longest time of a fetch."""

_ANSWER_MAX = 64 * 1024
"""Largest answer that is read, in bytes."""


def fetch_of(cluster: ClusterSettings) -> Callable[[], Awaitable[Token]]:
    """The fetch of a cluster's tokens, as its settings say."""
    if cluster.mechanism is SaslMechanism.AWS_MSK_IAM:
        return lambda: _signed(cluster)
    return (lambda: _printed(cluster)) if cluster.oauth.command else lambda: _granted(cluster)


async def _granted(cluster: ClusterSettings) -> Token:
    """A token by OAuth's client credentials (RFC 6749, section 4.4)."""
    import aiohttp

    url = cluster.oauth.token_url
    where = f"{cluster.variable('OAUTH_TOKEN_URL')}={url.partition('?')[0]}"
    form = {"grant_type": "client_credentials"} | ({"scope": cluster.oauth.scope} if cluster.oauth.scope else {})
    authorities = await asyncio.to_thread(trusting, cluster.variable("OAUTH_CA_FILE"), cluster.oauth.ca_file)
    headers = {"Authorization": _basic(cluster.api_key, cluster.api_secret), "Accept": "application/json"}
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, data=form, headers=headers, ssl=authorities, allow_redirects=False) as answer,
        ):
            status, body = answer.status, await _all_of(answer.content)
    except aiohttp.ClientConnectorCertificateError as error:
        cure = f"check {cluster.variable('OAUTH_CA_FILE')}"
        raise TokenUnavailable(f"{where}: its certificate is not accepted: {_verification(error)}: {cure}") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise TokenUnavailable(f"{where}: no answer: {_reason(error)}") from error
    return _in_answer(cluster, where, status, body)


class _Stream(Protocol):
    async def read(self, n: int) -> bytes: ...


async def _all_of(stream: _Stream) -> bytes:
    """The bytes up to the stream's end, or the first ones of a longer answer than any token's."""
    content = b""
    while len(content) < _ANSWER_MAX and (more := await stream.read(_ANSWER_MAX)):
        content += more
    return content


def _basic(user: str, password: Secret) -> str:
    """HTTP's basic authorization with both parts encoded as in a form (RFC 6749, section 2.3.1)."""
    pair = ":".join(urllib.parse.quote_plus(part) for part in (user, password.reveal()))
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _in_answer(cluster: ClusterSettings, where: str, status: int, body: bytes) -> Token:
    """The token in an answer; of a refusal only OAuth's own short code is shown."""
    try:
        answer = json.loads(body)
        code = str(answer.get("error")) if status != 200 else None
    except (ValueError, AttributeError, RecursionError):
        answer, code = None, None
    if status in (400, 401, 403):
        code_text = f": {code}" if code in _ERROR_CODES else ""
        names = ", ".join(cluster.variable(name) for name in ("API_KEY", "API_SECRET", "OAUTH_SCOPE"))
        raise CredentialsRefused(f"{where} refuses {cluster.login} (HTTP {status}{code_text}): check {names}")
    if status != 200:
        raise TokenUnavailable(f"{where}: HTTP {status} in place of a token")
    try:
        return token_of(answer["access_token"], _positive(answer.get("expires_in")))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise TokenUnavailable(f"{where}: its answer holds no access_token: is it a token endpoint?") from error


_ERROR_CODES = frozenset(
    ("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type")
) | {"invalid_scope"}
"""The codes of RFC 6749, section 5.2."""


def _positive(seconds: Any) -> float | None:
    return float(seconds) if seconds is not None and float(seconds) > 0 else None


def _verification(error: BaseException) -> str:
    cause = getattr(error, "certificate_error", error)
    return getattr(cause, "verify_message", "") or type(cause).__name__


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"not within {_SECONDS:g} s"
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if isinstance(number, int) and number > 0 else type(error).__name__


async def _printed(cluster: ClusterSettings) -> Token:
    """A token that a command prints; it runs in a process group of its own, which ends with it."""
    where = f"{cluster.variable('OAUTH_TOKEN_COMMAND')}: {cluster.oauth.command[0]}"
    try:
        process = await asyncio.create_subprocess_exec(
            *cluster.oauth.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise TokenUnavailable(f"{where} cannot be run: {(error.strerror or '').lower()}") from error
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_SECONDS):
            printed = await _all_of(process.stdout)
            code = await process.wait()
    except TimeoutError as error:
        raise TokenUnavailable(f"{where} did not end within {_SECONDS:g} s") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if code:
        raise TokenUnavailable(f"{where} failed with exit code {code}: run it by hand to see why")
    try:
        return token_of(printed.decode().strip())
    except ValueError as error:
        raise TokenUnavailable(f"{where} printed no token: expected it alone, on one line") from error


async def _signed(cluster: ClusterSettings) -> Token:
    """The token of MSK: a request to its service, signed with AWS credentials, for fifteen minutes."""
    try:
        async with asyncio.timeout(_SECONDS):
            text, expires = await asyncio.to_thread(_sign, cluster)
    except TimeoutError as error:
        raise TokenUnavailable(f"{cluster.login}: AWS gave no credentials within {_SECONDS:g} s") from error
    return token_of(text, expires / 1000 - epoch_seconds())


def _sign(cluster: ClusterSettings) -> tuple[str, int]:
    """The token and the end of its life, in milliseconds since 1970.

    Raises:
        TokenUnavailable: no credentials were found, or the service that gives them failed.
    """
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    from botocore.credentials import CredentialProvider, Credentials
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.session import Session

    class Provider(CredentialProvider):  # type: ignore[misc]
        """The credentials of the settings, or those that AWS's own search finds: environment, files, the instance."""

        def load(self) -> Any:
            if cluster.api_key:
                return Credentials(cluster.api_key, cluster.api_secret.reveal())
            credentials = Session().get_credentials()
            if credentials is None:
                names = f"{cluster.variable('API_KEY')} and {cluster.variable('API_SECRET')}"
                raise TokenUnavailable(f"{cluster.login}: no AWS credentials are found here: set {names}, or AWS's own")
            return credentials

    try:
        text, expires = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(cluster.region, Provider())
    except (BotoCoreError, ClientError, ValueError) as error:  # a ValueError tells of empty credentials
        raise TokenUnavailable(f"{cluster.login}: AWS gives no credentials: {type(error).__name__}") from error
    return str(text), int(expires)
