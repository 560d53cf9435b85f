"""Logins by OpenID Connect: the authorization code flow with PKCE (OpenID Connect Core 1.0, section 3.1; RFC 7636).

1. ``begin``: the browser gets a cookie of its own, and goes to the provider with a state, a nonce and a challenge.
2. The provider logs the user in as it likes, and sends the browser back with a code.
3. ``finish``: the same browser, by its cookie and the state, gives the code. The provider exchanges it for an ID token,
   whose signature, issuer, audience, times and nonce are checked. A claim of the user gives the right.

Strangers may begin logins: the cookie is sealed, so that nothing is kept for one, and the provider is asked for its
addresses once a minute. Of what the provider says nothing reaches an answer or a log line but the user's name, and the
short codes of errors: a token may be in it.
"""

import asyncio
import hmac
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from cryptography.fernet import Fernet, InvalidToken

from appliance.clock import monotonic
from appliance.console.access import Right
from appliance.errors import CredentialsRefused, TokenUnavailable
from appliance.kafka.client.client_tls import trusting
from appliance.settings.page_login import PageLoginSettings

BEGUN_SECONDS = 600
"""Longest time between the begin and the end of a login."""
_USER_MAX = 100
"""Longest name of a user, in characters."""
_SECONDS = 15.0
"""Longest time of the questions to the provider for one step."""
_KNOWN_SECONDS, _FAILED_SECONDS = 60.0, 5.0
"""Time for which the provider's addresses and keys are taken as they were, and for which its failure is."""
_EXCHANGES_MAX = 8
_LEEWAY = 30
"""Difference of the provider's clock and ours that is accepted, in seconds."""
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
"""Signatures with a key that the provider alone has; not ``none``, and no secret that the page has too."""
_OFFERED = "id_token_signing_alg_values_supported"
_METADATA = {"authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint", "_loaded_at"}
_CODES = ("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type")
"""The codes of RFC 6749, section 5.2, for a code."""

_T = TypeVar("_T")


class _Provider(Protocol):
    """The calls of Authlib's application, which has no types; each raises as its libraries do."""

    server_metadata: dict[str, Any]

    async def load_server_metadata(self) -> dict[str, Any]: ...

    async def create_authorization_url(self, redirect_uri: str) -> dict[str, str]: ...

    async def fetch_access_token(self, redirect_uri: str, **options: str) -> dict[str, Any]: ...

    async def parse_id_token(
        self, token: dict[str, Any], nonce: str, claims_options: Any, *, leeway: int
    ) -> dict[str, Any] | None: ...

    async def userinfo(self, token: dict[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The end of a login: the user, the provider's own name of them, their right, and the path that they want."""

    user: str
    subject: str
    right: Right
    path: str


class Logins:
    """The logins at one provider. ``clock`` is in seconds."""

    def __init__(self, own: PageLoginSettings, clock: Callable[[], float] = monotonic) -> None:
        self._own = own
        self._clock = clock
        self._seal = Fernet(Fernet.generate_key())
        self._tls: ssl.SSLContext | None = None
        self._provider: _Provider | None = None
        self._until = 0.0
        self._failure: TokenUnavailable | None = None
        self._asking = asyncio.Lock()
        self._exchanges = asyncio.Semaphore(_EXCHANGES_MAX)

    async def begin(self, redirect: str, path: str) -> tuple[str, str, str]:
        """The state and the cookie of a login, and the address for the browser, which comes back to ``redirect``."""
        provider = await self._current()
        request = await self._answer(provider.create_authorization_url(redirect))
        contents = [redirect, path, request["state"], request["nonce"], request["code_verifier"]]
        return request["state"], self._seal.encrypt(json.dumps(contents).encode()).decode(), request["url"]

    async def finish(self, cookie: str, query: Mapping[str, str]) -> LoggedIn:
        """The user whom the provider has logged in; ``query`` is that of the address to which it sent the browser.

        Raises:
            CredentialsRefused: this browser began no such login, the provider refuses, or its token is not valid.
            TokenUnavailable: the provider does not answer.
        """
        try:
            contents = self._seal.decrypt(cookie.encode(errors="replace"), ttl=BEGUN_SECONDS)
        except InvalidToken as error:
            raise CredentialsRefused("this browser has begun no such login in the last minutes") from error
        redirect, path, state, nonce, verifier = json.loads(contents)
        if not hmac.compare_digest(query.get("state", "").encode(errors="replace"), state.encode()):
            raise CredentialsRefused("the answer belongs to another login")
        if "code" not in query:
            raise CredentialsRefused("the provider has not logged the user in")
        if self._exchanges.locked():
            raise TokenUnavailable("too many logins at once")
        async with self._exchanges:
            provider = await self._current()
            claims = await self._answer(self._claims(provider, redirect, query["code"], verifier, nonce))
        names = (claims.get("preferred_username"), claims.get("email"), claims["sub"])
        for name in filter(None, map(_display_name, names)):
            return LoggedIn(name, _display_name(claims["sub"]), right_of(claims, self._own), path)
        raise CredentialsRefused("the provider gives the user no name")

    async def _claims(self, provider: _Provider, redirect: str, code: str, verifier: str, nonce: str) -> dict[str, Any]:
        """The claims of a valid ID token; those of the userinfo endpoint too, if the needed one is there alone."""
        expected = {
            "iss": {"essential": True, "value": self._own.issuer},
            "aud": {"essential": True, "value": self._own.client_id},
        }
        token = await provider.fetch_access_token(redirect, code=code, code_verifier=verifier)
        claims = await provider.parse_id_token(token, nonce, expected, leeway=_LEEWAY)
        if claims is None:
            raise CredentialsRefused(f"{self._where}: its answer has no ID token")
        if self._own.claim not in claims and provider.server_metadata.get("userinfo_endpoint"):
            more = await provider.userinfo(token=token)
            return {**more, **claims} if more.get("sub") == claims["sub"] else dict(claims)
        return dict(claims)

    async def _current(self) -> _Provider:
        """The provider with its addresses, which one at a time asks for."""
        async with self._asking:
            if self._clock() >= self._until:
                self._provider, self._failure = None, None
                try:
                    self._provider = await self._answer(self._configured())
                except TokenUnavailable as error:
                    self._failure = error
                self._until = self._clock() + (_FAILED_SECONDS if self._failure else _KNOWN_SECONDS)
        if self._provider is None:
            raise TokenUnavailable(str(self._failure))
        return self._provider

    async def _configured(self) -> _Provider:
        if self._tls is None:
            self._tls = await asyncio.to_thread(trusting, "CONSOLE_OIDC_CA_FILE", self._own.ca_file)
        provider = _application(self._own, self._tls)
        metadata = await provider.load_server_metadata()
        if metadata.get("issuer") != self._own.issuer:
            raise TokenUnavailable(f"{self._where}: it names itself otherwise: give the URL as it does")
        offered = metadata.get(_OFFERED) or ["RS256"]
        # Authlib takes any other key as an option of its client, such as one that ends the check of certificates.
        addresses = {name: value for name, value in metadata.items() if name in _METADATA}
        metadata.clear()
        metadata.update(addresses | {_OFFERED: [name for name in _ALGORITHMS if name in offered]})
        return provider

    async def _answer(self, asking: Awaitable[_T]) -> _T:
        """The answer of the provider, with the errors of its libraries as ours."""
        try:
            async with asyncio.timeout(_SECONDS):
                return await asking
        except (CredentialsRefused, TokenUnavailable):
            raise
        except Exception as error:  # each library has errors of its own
            raise _refusal(error)(f"{self._where}: {_reason(error)}") from error

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


def _display_name(name: object) -> str:
    return "".join(filter(str.isprintable, str(name or ""))).strip()[:_USER_MAX]


def _application(own: PageLoginSettings, tls: ssl.SSLContext) -> _Provider:
    from authlib.integrations.base_client import BaseApp
    from authlib.integrations.base_client.async_app import AsyncOAuth2Mixin
    from authlib.integrations.base_client.async_openid import AsyncOpenIDMixin
    from authlib.integrations.httpx_client import AsyncOAuth2Client

    class Application(AsyncOAuth2Mixin, AsyncOpenIDMixin, BaseApp):  # type: ignore[misc]
        client_cls = AsyncOAuth2Client

    options = {"scope": own.scope, "code_challenge_method": "S256", "trust_env": False, "verify": tls}
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


def _refusal(error: Exception) -> type[CredentialsRefused | TokenUnavailable]:
    from httpx2 import HTTPError

    return TokenUnavailable if isinstance(error, (HTTPError, OSError, ValueError)) else CredentialsRefused


def _reason(error: Exception) -> str:
    """The kind of an error; of a token that is not valid the claim as well, of a refused code OAuth's own."""
    from authlib.integrations.base_client import OAuthError
    from joserfc.errors import ClaimError, JoseError

    if isinstance(error, OAuthError) and error.error in _CODES:
        return f"it refuses the login: {error.error}"
    if isinstance(error, ClaimError):
        return f"its token is not valid: {error.error}: {error.claim}"
    if isinstance(error, JoseError):
        return f"its token is not valid: {type(error).__name__}"
    return f"no answer: {type(error).__name__}"
