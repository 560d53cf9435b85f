"""The control center of a link, and viewers of its page: each asks as the page's script does."""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping

import aiohttp

from bench.lib.clusters import Pair
from bench.lib.our_replicator import env_text, environment
from testbed.process import OwnedProcess

_READY_SECONDS = 60.0
_EVERY = 3.0
_AS_IN_THE_IMAGE = (
    "import sys; sys.modules['hypothesis'] = None; from appliance.cli import main; sys.exit(main(sys.argv[1:]))"
)
"""A library of ours imports hypothesis where it is installed: 16 MB that no image has."""

_HEADERS = {"Accept": "text/html", "Accept-Encoding": "gzip", "X-Part": "live"}


@contextlib.asynccontextmanager
async def control_center(pair: Pair, topic: str, link: str) -> AsyncIterator[tuple[OwnedProcess, str]]:
    """The control center of such a link, and the address of the link's page."""
    env_file = pair.directory / f"{link}.console.sh"
    env_file.touch(mode=0o600)
    bootstrap = pair.source.home_bootstrap, pair.destination.home_bootstrap
    env_file.write_text(env_text(*bootstrap, topic, link, {"CONTROL_CENTER_LISTEN": "127.0.0.1:0"}))
    command = [sys.executable, "-c", _AS_IN_THE_IMAGE, "console", "--env-file", str(env_file)]
    log_file, own = pair.directory / f"{link}.console.log", environment(os.environ, pair.directory)
    process = await OwnedProcess.start("control center", command, log_file, own)
    try:
        address = await process.wait_for_address("console: listening", _READY_SECONDS)
        yield process, f"http://{address}/links/{link}-destination/"
    finally:
        await process.stop()


@contextlib.asynccontextmanager
async def viewers(page: str, number: int) -> AsyncIterator[None]:
    """So many open pages while the block runs; they begin at different moments."""
    async with aiohttp.ClientSession() as session:
        tasks = [
            asyncio.create_task(_viewer(session, page, each * _EVERY / number), name=f"viewer {each}")
            for each in range(number)
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            for failure in ended:
                if isinstance(failure, Exception):
                    raise failure


async def _viewer(session: aiohttp.ClientSession, page: str, after: float) -> None:
    await asyncio.sleep(after)
    while True:
        for address in (page, f"{page}history.json"):
            async with session.get(address, headers=_HEADERS) as answer:
                answer.raise_for_status()
                await answer.read()
        await asyncio.sleep(_EVERY)


async def loaded(page: str, query: Mapping[str, str], times: int) -> tuple[float, int]:
    """The slowest of some loads of a page, in seconds, and the page's size in bytes, unpacked."""
    slowest, size = 0.0, 0
    headers = {name: text for name, text in _HEADERS.items() if name != "X-Part"}
    async with aiohttp.ClientSession() as session:
        for _ in range(times):
            began = time.perf_counter()
            async with session.get(page, params=query, headers=headers) as answer:
                answer.raise_for_status()
                body = await answer.read()
            slowest, size = max(slowest, time.perf_counter() - began), len(body)
    return slowest, size
