"""Who may read and who may command: viewers and operators, over real connections."""

import asyncio
import contextlib
import ssl
from pathlib import Path

import aiohttp
import pytest

from appliance.errors import SettingsError
from appliance.settings.target import Target
from appliance.settings.values import Side
from tests.support.authority import Authority, page_files, replace
from tests.support.console import of_size, shown
from tests.support.facts import NOW, settings

OPERATOR = "Vq3t0cJ9mW5xkR7fLs2hYbNd8pEuZa4G"
VIEWER = "Rk8sQw2nLx6vBt1yHc5mJd9gFp3zTe7U"
TOKENS = {"CONSOLE_TOKEN": OPERATOR, "CONSOLE_VIEWER_TOKEN": VIEWER}
OWN = "/links/orange-grape/"
PAGES = ["/", OWN, f"{OWN}topics", f"{OWN}actions", f"{OWN}history.json", "/connectors", "/card.json", "/metrics"]
COMMANDS = [("POST", f"{OWN}actions/doctor"), ("PUT", "/connectors/replicator-orange/pause")]


async def metrics(at: Target) -> tuple[int, bytes]:
    return 200, f"of {at.port}\n".encode()


async def status(address: str, path: str, token: str = "", method: str = "GET") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.request(method, f"http://{address}{path}", allow_redirects=False) as answer,
    ):
        return answer.status


async def test_case_992_with_a_viewers_token_nobody_reads_without_one() -> None:
    async with shown(of_size({"orders": 2}), metrics=metrics, **TOKENS) as address:
        for page in PAGES:
            assert [await status(address, page, token) for token in ("", VIEWER, OPERATOR)] == [401, 200, 200], page
        wrong = await asyncio.gather(*(status(address, page, "wrong") for page in PAGES))
        assert set(wrong) == {401}
        assert await status(address, "/assets/console.css") == 200


async def test_case_992_a_viewer_changes_nothing_and_an_operator_does() -> None:
    async with shown(of_size({"orders": 2}), **TOKENS) as address:
        for method, path in COMMANDS:
            assert await status(address, path, VIEWER, method) in (401, 403), path
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {VIEWER}"}) as session:
            async with session.get(f"http://{address}{OWN}actions") as answer:
                assert "actions/pause" not in await answer.text()
            async with session.post(f"http://{address}{OWN}session", data={"token": VIEWER}) as answer:
                assert answer.status == 403, "the form is the operators'"
        assert await status(address, COMMANDS[0][1], OPERATOR, "POST") == 303


async def test_case_992_a_probe_without_a_token_learns_that_the_page_answers_and_nothing_else() -> None:
    async with (
        shown(of_size({"orders": 2}), **TOKENS) as address,
        aiohttp.ClientSession() as session,
        session.get(f"http://{address}/health") as answer,
    ):
        assert (answer.status, await answer.read()) == (200, b"")


async def test_case_992_without_a_viewers_token_all_stays_as_it_is() -> None:
    async with shown(of_size({"orders": 2}), metrics=metrics, CONSOLE_TOKEN=OPERATOR) as address:
        assert {await status(address, page, "a proxy's own") for page in PAGES} == {200}


@pytest.mark.parametrize(("path", "port"), [("/metrics", 8080), ("/metrics/tunnel", 8081)])
async def test_case_992_the_metrics_are_those_of_the_replicator_and_of_the_tunnels_end(path: str, port: int) -> None:
    async with (
        shown(None, metrics=metrics) as address,
        aiohttp.ClientSession() as session,
        session.get(f"http://{address}{path}") as answer,
    ):
        assert await answer.text() == f"of {port}\n"
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")


async def test_case_992_metrics_that_nobody_serves_are_a_failed_scrape() -> None:
    async with shown(None) as address:
        assert await status(address, "/metrics") == 502


@pytest.mark.parametrize(("signed_by_ours", "expected"), [(True, 200), (False, None)])
async def test_case_992_a_client_certificate_reads_in_place_of_the_token(
    signed_by_ours: bool, expected: int | None, tmp_path: Path
) -> None:
    authority, clients = Authority(), Authority("clients")
    replace(tmp_path / "clients.pem", clients.pem)
    leaf = (clients if signed_by_ours else Authority("clients")).leaf(Side.DESTINATION)
    replace(tmp_path / "client.pem", leaf.key + leaf.certificate)
    trusting = ssl.create_default_context(cadata=authority.pem.decode())
    own = page_files(tmp_path / "page", authority) | {"CONSOLE_CLIENT_AUTHORITY_FILE": str(tmp_path / "clients.pem")}
    async with (
        shown(of_size({"orders": 2}, now=NOW), metrics=metrics, **own, **TOKENS) as address,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
    ):

        async def got() -> int:
            page = f"https://{address}/metrics"
            async with session.get(page, ssl=trusting, server_hostname="tunnel.example") as answer:
                return answer.status

        assert await got() == 401
        trusting.load_cert_chain(tmp_path / "client.pem")
        if expected is None:
            with pytest.raises(aiohttp.ClientError):
                await got()
        else:
            assert await got() == expected


async def test_case_1047_where_certificates_read_no_session_of_tls_1_2_outlives_their_authority(tmp_path: Path) -> None:
    authority = Authority()
    replace(tmp_path / "clients.pem", Authority("clients").pem)
    own = page_files(tmp_path / "page", authority)
    trusting = ssl.create_default_context(cadata=authority.pem.decode())
    trusting.maximum_version = ssl.TLSVersion.TLSv1_2
    for more, expected in (({}, 401), ({"CONSOLE_CLIENT_AUTHORITY_FILE": str(tmp_path / "clients.pem")}, None)):
        async with shown(None, **own, **TOKENS, **more) as address, aiohttp.ClientSession() as session:
            found = None
            with contextlib.suppress(aiohttp.ClientConnectorError):
                async with session.get(f"https://{address}/", ssl=trusting, server_hostname="tunnel.example") as answer:
                    found = answer.status
            assert found == expected


def test_case_992_viewers_and_operators_have_secrets_of_their_own() -> None:
    with pytest.raises(SettingsError, match="CONSOLE_VIEWER_TOKEN: expected another secret than CONSOLE_TOKEN"):
        settings(CONSOLE_TOKEN=OPERATOR, CONSOLE_VIEWER_TOKEN=OPERATOR)


def test_case_992_an_authority_without_tls_or_token_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "clients.pem").write_bytes(Authority().pem)
    with pytest.raises(SettingsError) as refused:
        settings(CONSOLE_CLIENT_AUTHORITY_FILE=str(tmp_path / "clients.pem"))
    expected = "expected with it CONSOLE_TLS_CERTIFICATE_FILE and CONSOLE_VIEWER_TOKEN"
    assert refused.value.faults == (f"CONSOLE_CLIENT_AUTHORITY_FILE={tmp_path}/clients.pem: {expected}",)
