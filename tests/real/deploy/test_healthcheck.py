"""The health checks of the containers, as Docker runs them."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.runtime.http import TEXT, HttpServer, Page
from appliance.settings.target import Target
from deploy.render.container import by_tls, healthcheck
from tests.support.authority import page_files
from tests.support.console import shown
from tests.support.patience import PATIENCE


async def outcome(port: int, check: Callable[[str], str] = str) -> int | None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        check(healthcheck(port)),
        stderr=asyncio.subprocess.DEVNULL,
        env={"http_proxy": "http://127.0.0.1:1"},
    )
    async with asyncio.timeout(PATIENCE):
        return await process.wait()


@pytest.mark.parametrize("status", [200, 503])
async def test_a_container_is_well_when_its_health_page_answers_whatever_is_wrong_elsewhere(status: int) -> None:
    # Case 8: before, a source VM that was down made the destination VM's container unhealthy.
    asked: list[str] = []

    async def page(path: str) -> Page:
        asked.append(path)
        return Page(status, TEXT, b"")

    server = HttpServer(page)
    at = await server.start("CONSOLE_LISTEN", Target("127.0.0.1", 0))
    try:
        assert await outcome(at.port) == 0
    finally:
        await server.close()
    assert asked == ["/health"]


async def test_case_991_a_page_with_tls_is_asked_by_tls_whatever_name_its_certificate_has(tmp_path: Path) -> None:
    async with shown(None, **page_files(tmp_path)) as address:
        port = int(address.rpartition(":")[2])
        assert await outcome(port, by_tls) == 0
        assert await outcome(port) != 0


async def test_a_container_that_serves_no_page_is_not_well() -> None:
    server = HttpServer(lambda _: asyncio.sleep(0, Page(200, TEXT, b"")))
    at = await server.start("CONSOLE_LISTEN", Target("127.0.0.1", 0))
    await server.close()
    assert await outcome(at.port) != 0
