"""A diagnosis of a real path, whole first, then broken at one step after the other."""

import asyncio
import contextlib
import os
import shlex
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from appliance.demo.plan import ApiKey
from appliance.doctor.command import examine
from appliance.doctor.report import Report
from appliance.settings.secret import Secret
from appliance.settings.values import Side
from appliance.tunnel.deadlines import Deadlines
from tests.support.link import GRAPE, ORANGE, SECONDS, Link, link

pytestmark = pytest.mark.asyncio(loop_scope="module")

READER, WRITER = ApiKey("READER", Secret("reader-secret")), ApiKey("WRITER", Secret("writer-secret"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Link]:
    """Both clusters, with both ends of the tunnel between them."""
    plans = replace(ORANGE, limited_keys=(READER,)), replace(GRAPE, limited_keys=(WRITER,))
    async with link(tmp_path_factory.mktemp("doctor"), *plans) as made, made.tunnel():
        made.make_topic(made.orange, "orders", 2)
        made.make_topic(made.orange, "orders-eu", 2)
        made.make_topic(made.orange, "payments")
        yield made


async def diagnosis(on: Link, side: Side = Side.DESTINATION, deadlines: Deadlines | None = None, **changed: str) -> Report:
    path = on.directory / "setenv.sh"
    path.write_text("".join(f"export {k}={shlex.quote(v)}\n" for k, v in (on.variables() | changed).items()))
    return await examine(side, path, {}, deadlines)


async def test_a_whole_path(running):
    for side in Side:
        report = await diagnosis(running, side)
        for result in report.results:
            print(f"{result.seconds:.2f}", result)
