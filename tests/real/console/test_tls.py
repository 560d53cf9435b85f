"""The page's TLS on real sockets, with files that change while connections are open."""

import asyncio
import ssl
from pathlib import Path

import aiohttp
import pytest

from appliance.errors import SettingsError
from appliance.runtime import background
from appliance.settings.values import Side
from tests.support.authority import DAY, Authority, page_files, replace, write_files
from tests.support.console import shown
from tests.support.facts import settings
from tests.support.patience import PATIENCE

TOKEN = "Vq3t0cJ9mW5xkR7fLs2hYbNd8pEuZa4G"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connected(
    address: str, authority: Authority, name: str = "tunnel.example", trusting: ssl.SSLContext | None = None
) -> Streams:
    trusting = trusting or ssl.create_default_context(cadata=authority.pem.decode())
    trusting.check_hostname = bool(name)
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port), ssl=trusting, server_hostname=name)


def shown_certificate(streams: Streams) -> bytes:
    certificate: bytes = streams[1].get_extra_info("ssl_object").getpeercert(binary_form=True)
    return certificate


async def answered(streams: Streams) -> bool:
    streams[1].write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head = await streams[0].readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    await streams[0].readexactly(length)
    return head.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("name", ["tunnel.example", ""], ids=["by name", "by address"])
async def test_case_991_a_new_certificate_is_for_new_connections_and_those_that_stand_go_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "RETRY_SECONDS", 0.01)
    authority = Authority()
    async with shown(None, **page_files(tmp_path, authority)) as address, asyncio.timeout(PATIENCE):
        standing = await connected(address, authority, name)
        assert await answered(standing)
        page_files(tmp_path, authority)
        while shown_certificate(present := await connected(address, authority, name)) == shown_certificate(standing):
            present[1].close()
        assert await answered(present)
        assert await answered(standing)
        for _, writer in (present, standing):
            writer.close()


async def test_case_991_new_files_that_do_not_fit_are_one_line_and_the_page_keeps_its_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "RETRY_SECONDS", 0.01)
    caplog.set_level("INFO", "appliance.console")
    authority = Authority()
    files = page_files(tmp_path, authority)
    async with shown(None, **files) as address, asyncio.timeout(PATIENCE):
        replace(tmp_path / "key.pem", authority.leaf(Side.SOURCE).key)
        while not caplog.messages:
            await asyncio.sleep(0.01)
        streams = await connected(address, authority)
        assert await answered(streams)
        streams[1].close()
        page_files(tmp_path, authority)
        while len(caplog.messages) < 2:
            await asyncio.sleep(0.01)
    key, certificate = files["CONSOLE_TLS_KEY_FILE"], files["CONSOLE_TLS_CERTIFICATE_FILE"]
    refused, taken = caplog.messages
    assert refused == f"CONSOLE_TLS_KEY_FILE={key}: expected the key of CONSOLE_TLS_CERTIFICATE_FILE={certificate}"
    assert taken == "certificate files taken"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the old versions' names
async def test_case_991_no_tls_before_1_2_is_spoken_and_a_session_is_for_tls_alone(tmp_path: Path) -> None:
    authority = Authority()
    trusting = ssl.create_default_context(cadata=authority.pem.decode())
    async with (
        shown(None, CONSOLE_TOKEN=TOKEN, **page_files(tmp_path, authority)) as address,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
    ):
        request = {"ssl": trusting, "server_hostname": "tunnel.example", "allow_redirects": False}
        page = f"https://{address}/links/orange-grape/session"
        async with session.post(page, data={"token": TOKEN}, **request) as answer:
            cookie = answer.headers["Set-Cookie"]
        old = ssl.create_default_context(cadata=authority.pem.decode())
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            await connected(address, authority, trusting=old)
    assert {"Secure", "HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))


def test_case_991_files_that_do_not_fit_are_one_line_each_at_the_start(tmp_path: Path) -> None:
    authority = Authority()
    files = page_files(tmp_path, authority)
    for begins in (-3 * DAY, DAY):
        write_files(tmp_path, b"", authority.leaf(Side.SOURCE, begins=begins, lasts=2 * DAY))
        with pytest.raises(SettingsError) as refused:
            settings(**files)
        (line,) = refused.value.faults
        assert line.startswith(f"CONSOLE_TLS_CERTIFICATE_FILE={tmp_path}/certificate.pem: expected a certificate that")
    del files["CONSOLE_TLS_KEY_FILE"]
    with pytest.raises(SettingsError, match="CONSOLE_TLS_KEY_FILE: expected both files, or neither"):
        settings(**files)
