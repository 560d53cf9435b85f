"""Logins by OpenID Connect: the authorization code flow with PKCE (OpenID Connect Core 1.0, section 3.1; RFC 7636).

1. ``begin``: the browser gets a cookie of its own, and goes to the provider with a state, a nonce and a challenge.
2. The provider logs the user in as it likes, and sends the browser back with a code.
3. ``finish``: the same browser, by its cookie and the state, gives the code. The provider exchanges it for an ID token,
   whose signature, issuer, audience, times and nonce are checked. A claim of the user gives the right.

Nothing that the provider says becomes part of an answer or a log line: a token may be in it.
"""

import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from appliance.console.access import Right
from appliance.errors import CredentialsRefused, SettingsError, TokenUnavailable
from appliance.kafka.client.client_tls import trusting
from appliance.settings.page_login import PageLoginSettings

BEGUN_SECONDS = 600
"""Longest time between the begin and the end of a login."""
_BEGUN_MAX = 256
_USER_MAX = 100
"""Longest name of a user, in characters."""
_SECONDS = 15.0
"""Longest time of one request to the provider."""
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
"""Signatures with a key that the provider alone has; not ``none``, and no secret that the page has too."""
_OFFERED = "id_token_signing_alg_values_supported"
_METADATA = {"issuer", "authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint", "_loaded_at"}


class _Provider(Protocol):
    """The calls of Authlib's application, which has no types; each raises as its libraries do."""

    server_metadata: dict[str, Any]

    async def load_server_metadata(self) -> dict[str, Any]: ...

    async def create_authorization_url(self, redirect_uri: str) -> dict[str, str]: ...

    async def fetch_access_token(self, redirect_uri: str, **options: str) -> dict[str, Any]: ...

    async def parse_id_token(self, token: dict[str, Any], nonce: str, claims_options: Any) -> dict[str, Any]: ...

    async def userinfo(self, token: dict[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class _Begun:
    """A login under way until ``end``, in seconds of the clock; ``wanted`` is the path where it began."""

    provider: _Provider
    redirect: str
    wanted: str
    end: float
    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The end of a login: who has logged in, with which right, and the path that was wanted."""

    user: str
    right: Right
    wanted: str


class Logins:
    """The logins under way. ``clock`` is in seconds."""

    def __init__(self, own: PageLoginSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._own = own
        self._clock = clock
        self._begun: dict[str, _Begun] = {}

    async def begin(self, redirect: str, wanted: str) -> tuple[str, str]:
        """The cookie of a new login, and the provider's address for the browser, which comes back to ``redirect``.

        Raises:
            TokenUnavailable: the provider does not answer as one.
        """
        provider = _provider(self._own)
        try:
            metadata = await provider.load_server_metadata()
            offered = metadata.get(_OFFERED) or ["RS256"]
            # Authlib takes any other key as an option of its client, such as one that ends the check of certificates.
            kept = {name: value for name, value in metadata.items() if name in _METADATA}
            metadata.clear()
            metadata.update(kept | {_OFFERED: [name for name in _ALGORITHMS if name in offered]})
            sent = await provider.create_authorization_url(redirect)
            state, nonce, verifier = sent["state"], sent["nonce"], sent["code_verifier"]
        except Exception as error:  # each library has errors of its own
            raise TokenUnavailable(f"{self._where}: no provider answers: {_reason(error)}") from error
        now, cookie = self._clock(), secrets.token_urlsafe(32)
        self._begun = {key: login for key, login in self._begun.items() if login.end > now}
        while len(self._begun) >= _BEGUN_MAX:
            del self._begun[next(iter(self._begun))]
        self._begun[cookie] = _Begun(provider, redirect, wanted, now + BEGUN_SECONDS, state, nonce, verifier)
        return cookie, sent["url"]

    async def finish(self, cookie: str, query: Mapping[str, str]) -> LoggedIn:
        """The user whom the provider has logged in; ``query`` is that of the address to which it sent the browser.

        Raises:
            CredentialsRefused: this browser began no such login, the provider refuses, or its token is not valid.
            TokenUnavailable: the provider does not answer.
        """
        login = self._begun.pop(cookie, None)
        if login is None or login.end <= self._clock():
            raise CredentialsRefused("this browser has begun no login in the last minutes")
        if not hmac.compare_digest(query.get("state", "").encode(errors="replace"), login.state.encode()):
            raise CredentialsRefused("the answer belongs to another login")
        if "code" not in query:
            raise CredentialsRefused("the provider has not logged the user in")
        claims = await self._claims(login, query["code"])
        name = str(claims.get("preferred_username") or claims.get("email") or claims["sub"])
        user = "".join(filter(str.isprintable, name))[:_USER_MAX]
        return LoggedIn(user, right_of(claims, self._own), login.wanted)

    async def _claims(self, login: _Begun, code: str) -> Mapping[str, Any]:
        """The claims of a valid ID token; those of the userinfo endpoint too, if the needed one is there alone."""
        expected = {
            "iss": {"essential": True, "value": self._own.issuer},
            "aud": {"essential": True, "value": self._own.client_id},
        }
        provider = login.provider
        try:
            token = await provider.fetch_access_token(login.redirect, code=code, code_verifier=login.verifier)
            claims = await provider.parse_id_token(token, login.nonce, expected)
            if self._own.claim not in claims and "userinfo_endpoint" in provider.server_metadata:
                more = await provider.userinfo(token=token)
                claims = {**more, **claims} if more.get("sub") == claims["sub"] else claims
        except Exception as error:  # each library has errors of its own
            kind = TokenUnavailable if _is_network(error) else CredentialsRefused
            raise kind(f"{self._where}: no valid login: {_reason(error)}") from error
        return claims

    @property
    def _where(self) -> str:
        return f"CONSOLE_OIDC_ISSUER={self._own.issuer}"


def right_of(claims: Mapping[str, Any], own: PageLoginSettings) -> Right:
    """The right of a user with these claims."""
    value = claims.get(own.claim)
    values = set(filter(lambda each: isinstance(each, str), value if isinstance(value, list) else [value]))
    if values & set(own.operators):
        return Right.OPERATOR
    return Right.VIEWER if "*" in own.viewers or values & set(own.viewers) else Right.NONE


def _provider(own: PageLoginSettings) -> _Provider:
    """Authlib's application for one login, so that the provider's present addresses and keys are taken."""
    from authlib.integrations.base_client import BaseApp
    from authlib.integrations.base_client.async_app import AsyncOAuth2Mixin
    from authlib.integrations.base_client.async_openid import AsyncOpenIDMixin
    from authlib.integrations.httpx_client import AsyncOAuth2Client

    class Application(AsyncOAuth2Mixin, AsyncOpenIDMixin, BaseApp):  # type: ignore[misc]
        client_cls = AsyncOAuth2Client

    options = {"scope": own.scope, "code_challenge_method": "S256", "timeout": _SECONDS, "trust_env": False}
    options["verify"] = trusting("CONSOLE_OIDC_CA_FILE", own.ca_file)
    method = {} if own.client_secret else {"token_endpoint_auth_method": "none"}
    application: _Provider = Application(
        framework=None,
        name="provider",
        client_id=own.client_id,
        client_secret=own.client_secret.reveal() or None,
        server_metadata_url=f"{own.issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs=options | method,
    )
    return application


def _is_network(error: BaseException) -> bool:
    from httpx2 import HTTPError

    return isinstance(error, HTTPError)


def _reason(error: BaseException) -> str:
    """The kind of an error; of a token that is not valid the claim as well, which the library names."""
    from joserfc.errors import JoseError

    if isinstance(error, SettingsError):
        return str(error)
    return str(error) if isinstance(error, JoseError) else type(error).__name__
