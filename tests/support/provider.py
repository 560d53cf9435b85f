"""An OpenID Connect provider that logs everybody in at once, and whose tokens can be made wrong."""

import base64
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from joserfc.jws import JWSRegistry

CLIENT, CLIENT_SECRET = "control-center", "m7Yq2vKx9TbR4nWs8LpDm7Yq2vKx9TbR"


@dataclass(slots=True)
class Provider:
    """What the provider says: ``claims`` change those of a valid token, None leaves one out."""

    issuer: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    header: dict[str, str] = field(default_factory=lambda: {"alg": "RS256", "kid": "1"})
    metadata: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    """That of the token endpoint."""
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "1"}))
    signing: Any = None
    """The key that signs; None for the published one."""
    asked: list[dict[str, str]] = field(default_factory=list)
    """The queries of authorization, one for each login."""
    codes: set[str] = field(default_factory=set)
    """Those that were exchanged: a provider takes each once."""
    configured: int = 0
    """The number of questions for its addresses."""

    def token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": "1", "exp": now + 60, "iat": now, "nonce": nonce}
        claims |= {"preferred_username": "alice", "groups": ["operators"]} | self.claims
        given = {name: value for name, value in claims.items() if value is not None}
        registry = JWSRegistry(algorithms=[self.header["alg"]], strict_check_header=False)
        return jwt.encode(self.header, given, self.signing or self.key, registry=registry)

    async def configuration(self, _request: web.Request) -> web.Response:
        self.configured += 1
        own = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
        }
        return web.json_response(own | self.metadata)

    async def authorize(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.query))
        sent = request.query["redirect_uri"], request.query["state"]
        return web.Response(status=302, headers={"Location": f"{sent[0]}?code={len(self.asked)}&state={sent[1]}"})

    async def exchange(self, request: web.Request) -> web.Response:
        form = await request.post()
        code = str(form["code"])
        login = self.asked[int(code) - 1]
        if code in self.codes:
            return web.json_response({"error": "invalid_grant"}, status=400)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != login["code_challenge"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        self.codes.add(code)
        assert form["redirect_uri"] == login["redirect_uri"]
        tokens = {"access_token": "access", "token_type": "Bearer", "id_token": self.token(login["nonce"])}
        return web.json_response(tokens if self.status == 200 else {"error": "invalid_grant"}, status=self.status)

    async def keys(self, _request: web.Request) -> web.Response:
        return web.json_response({"keys": [self.key.as_dict(private=False)]})

    async def user(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer access"
        return web.json_response(self.userinfo)


@contextlib.asynccontextmanager
async def provider() -> AsyncIterator[Provider]:
    """The provider while the block runs."""
    made, app = Provider(), web.Application()
    app.add_routes(
        [
            web.get("/.well-known/openid-configuration", made.configuration),
            web.get("/authorize", made.authorize),
            web.post("/token", made.exchange),
            web.get("/keys", made.keys),
            web.get("/userinfo", made.user),
        ]
    )
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        made.issuer = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        await runner.cleanup()


def secret_key() -> OctKey:
    """The client's secret as a key, which the page has too."""
    return OctKey.import_key(CLIENT_SECRET)
