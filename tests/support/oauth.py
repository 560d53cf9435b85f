"""An authority of OAuth: it signs tokens that brokers check against its public key, and gives them out by HTTPS."""

import asyncio
import base64
import contextlib
import json
import math
import ssl
import time
import urllib.parse
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from testbed.certificates import CertificateAuthority

AUDIENCE = "kafka"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


@dataclass(slots=True)
class TokenAuthority:
    """Signs tokens (RFC 7519) that last for ``life`` seconds."""

    life: float = 3600.0
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    def token(self, subject: str, **claims: object) -> str:
        now = math.ceil(time.time())
        body = {"sub": subject, "aud": AUDIENCE, "iat": now - 1, "exp": now + int(self.life), **claims}
        parts = ({"alg": "RS256", "kid": "1", "typ": "JWT"}, body)
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
        return f"{signed}.{_encoded(self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def write_keys(self, path: Path) -> Path:
        """Write the public key as brokers read it (RFC 7517)."""
        numbers = self.key.public_key().public_numbers()
        key = {"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "n": _number(numbers.n), "e": _number(numbers.e)}
        path.write_text(json.dumps({"keys": [key]}))
        return path


@dataclass(slots=True)
class TokenEndpoint:
    """A token endpoint that knows one client; ``granted`` counts its tokens, and ``status`` is that of its answers."""

    authority: TokenAuthority
    client: tuple[str, str]
    subject: str
    ca_file: Path
    url: str = ""
    granted: int = 0
    status: int = 200
    scopes: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
        given = base64.b64decode(encoded).decode().partition(":")
        client = urllib.parse.unquote_plus(given[0]), urllib.parse.unquote_plus(given[2])
        if self.status != 200:
            return web.Response(status=self.status, text="secret words of the endpoint")
        if scheme != "Basic" or client != self.client or form.get("grant_type") != "client_credentials":
            return web.json_response({"error": "invalid_client", "error_description": "secret words"}, status=401)
        self.granted += 1
        self.scopes.append(str(form.get("scope", "")))
        self.tokens.append(self.authority.token(self.subject))
        token = {"access_token": self.tokens[-1], "token_type": "Bearer"}
        return web.json_response(token | {"expires_in": int(self.authority.life)})


@contextlib.asynccontextmanager
async def token_endpoint(
    directory: Path, authority: TokenAuthority, client: tuple[str, str], subject: str
) -> AsyncIterator[TokenEndpoint]:
    """A token endpoint on loopback, by HTTPS; its certificate's authority is in ``ca_file``."""
    signer = CertificateAuthority.create("endpoint")
    (directory / "endpoint.pem").write_bytes(signer.issue(("127.0.0.1",)))
    (directory / "endpoint-ca.pem").write_bytes(signer.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "endpoint.pem")
    made = TokenEndpoint(authority, client, subject, directory / "endpoint-ca.pem")
    application = web.Application()
    application.router.add_post("/token", made.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        made.url = f"https://127.0.0.1:{runner.addresses[0][1]}/token"
        yield made
    finally:
        await runner.cleanup()


async def until_granted(endpoint: TokenEndpoint, count: int) -> None:
    """Wait until the endpoint has given this many tokens."""
    while endpoint.granted < count:
        await asyncio.sleep(0.02)
