"""stunnel 5, the peer of our tunnel: a server and a client with certificates like ours."""

import asyncio
import contextlib
import secrets
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import ToolMissing
from appliance.settings.values import Side
from appliance.tls.certificates import Credentials, make_credentials
from bench.lib.running import LOOPBACK, free_port, running
from bench.lib.tunnel_ways import Cipher, Way, negotiated

_READY = "Configuration successful"


@dataclass(frozen=True, slots=True)
class End:
    """One end of stunnel: client or server, the address on which it listens, and the address that it dials."""

    client: bool
    accept: int
    connect: int


def stunnel_program() -> str:
    """The path of stunnel."""
    found = shutil.which("stunnel4") or shutil.which("stunnel")
    if not found:
        raise ToolMissing("stunnel is missing: install Debian's package stunnel4")
    return found


@contextlib.asynccontextmanager
async def stunnel(directory: Path, port: int, cipher: Cipher) -> AsyncIterator[Way]:
    """Both ends, with ``cipher`` only."""
    program, entrance, between = stunnel_program(), free_port(), free_port()
    key = secrets.token_bytes(32)
    ours = {side: make_credentials(key, "stunnel", side) for side in Side}
    server = _settings(directory, ours[Side.SOURCE], cipher, End(False, between, port))
    client = _settings(directory, ours[Side.DESTINATION], cipher, End(True, entrance, between))
    async with (
        running("stunnel's server", [program, str(server)], directory, _READY) as source,
        running("stunnel's client", [program, str(client)], directory, _READY) as destination,
    ):
        spoken = await asyncio.to_thread(negotiated, between, ours[Side.DESTINATION])
        if spoken != cipher:
            raise source.failure(f"speaks {spoken} instead of {cipher}")
        yield Way((LOOPBACK, entrance), (destination, source), between)


def _settings(directory: Path, credentials: Credentials, cipher: Cipher, end: End) -> Path:
    authority, own, file = (directory / f"stunnel-{end.accept}.{kind}" for kind in ("ca", "pem", "conf"))
    authority.write_bytes(credentials.authority)
    own.touch(0o600)
    own.write_bytes(credentials.key_and_certificate)
    file.write_text(stunnel_text(authority, own, cipher, end))
    return file


def stunnel_text(authority: Path, own: Path, cipher: Cipher, end: End) -> str:
    """An end's settings, as similar to ours as possible: no delay, and both identities proved by each connection."""
    process = ["foreground = yes", "pid =", "socket = l:TCP_NODELAY=1", "socket = r:TCP_NODELAY=1"]
    service = {
        "client": "yes" if end.client else "no",
        "accept": f"{LOOPBACK}:{end.accept}",
        "connect": f"{LOOPBACK}:{end.connect}",
        "cert": own,
        "CAfile": authority,
        "verifyChain": "yes",
        "sslVersion": cipher.version,
        "ciphersuites": cipher.suite,
        "sessionResume": "no",
    }
    lines = [*process, "[bench]", *(f"{name} = {value}" for name, value in service.items())]
    return "".join(f"{line}\n" for line in lines)
