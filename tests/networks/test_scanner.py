"""OpenSSL's own client learns nothing at the tunnel's port."""

import asyncio
import subprocess
from collections.abc import Sequence

import pytest

from appliance.settings.target import Target
from tests.support.patience import PATIENCE
from tests.support.tls import running_server
from tests.support.tunnel import HOST, LINK


@pytest.mark.parametrize("options", [[], ["-tls1_2"], ["-groups", "ffdhe8192"], ["-alpn", "h2"], ["-starttls", "smtp"]])
async def test_a_scanner_learns_nothing_by_tls(options: Sequence[str]) -> None:
    async with running_server(Target(HOST, 9093)) as server:
        scan = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-msg", "-showcerts", *options]
        done = await asyncio.to_thread(
            subprocess.run, scan, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False
        )
    assert b"CONNECTED" in done.stdout + done.stderr
    assert b"<<<" not in done.stdout, "the server has sent a TLS message"
    assert b"CERTIFICATE" not in done.stdout
    assert not any(word.encode() in done.stdout + done.stderr for word in (*LINK.split("-"), "replicator-link"))
