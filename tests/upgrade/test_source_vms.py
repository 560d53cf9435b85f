"""Two source VMs, of which one after the other gets this release, and then the last one again, while clients connect.

The client is this release's. Its connections are made all the time, and the longest pause without a new one is printed.
"""

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tunnel.client import TunnelClient
from appliance.tunnel.model.servers import Condition
from bench.lib.running import OWN_ADDRESS, free_port
from testbed.process import OwnedProcess
from tests.support.carrying import echoed
from tests.support.dns import answer, scripted_server
from tests.support.gateway import gateway_variables
from tests.support.patience import PATIENCE
from tests.support.releases import Release
from tests.support.settings import write_settings
from tests.support.tls import identity
from tests.support.tunnel import HOST, carries, carrying, echo, target_server, tunnel_settings

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]  # needs this repository's history


async def everybody_is_here(query: bytes) -> list[bytes]:
    return [answer(query, "127.0.0.1")]


async def source_vm(release: Release, variables: dict[str, str], directory: Path) -> OwnedProcess:
    """The source VM's end of a release, ready."""
    name = f"source-{release.version}-{secrets.token_hex(3)}"
    env_file = write_settings(directory / f"{name}.sh", variables)
    command = [*release.program, "source", "--env-file", str(env_file)]
    process = await OwnedProcess.start(name, command, directory / f"{name}.log", release.variables)
    await process.wait_for_line(r"\bready\b", PATIENCE)
    return process


@contextlib.asynccontextmanager
async def connecting(endpoint: int) -> AsyncIterator[list[float]]:
    """The times at which new connections have carried a byte, while the block runs."""
    times: list[float] = []

    async def connect() -> None:
        while True:
            if await echoed(endpoint) == b"x":
                times.append(asyncio.get_running_loop().time())
            await asyncio.sleep(0.02)

    task = asyncio.create_task(connect())
    try:
        yield times
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_all_are_well(client: TunnelClient) -> None:
    async with asyncio.timeout(PATIENCE):
        while not all(vm.usable and vm.condition is Condition.WELL for vm in client.vms):
            await asyncio.sleep(0.02)


async def test_source_vms_of_either_release_stand_in_for_each_other_while_one_after_the_other_is_replaced(
    older: Release, newer: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses = {}
    async with contextlib.AsyncExitStack() as undo:
        broker = await undo.enter_async_context(target_server(echo))
        resolver = await undo.enter_async_context(scripted_server(everybody_is_here))
        variables = [gateway_variables(broker, free_port(OWN_ADDRESS), TUNNEL_RESOLVER=str(resolver)) for _ in range(2)]
        vms = [await source_vm(older, each, tmp_path) for each in variables]
        undo.push_async_callback(lambda: vms[0].kill())
        undo.push_async_callback(lambda: vms[1].kill())
        target, (first, second) = Target(HOST, broker), (Target(OWN_ADDRESS, int(e["TUNNEL_PORT"])) for e in variables)
        settings = tunnel_settings(target, server=first, others=((second, None),))
        client = await undo.enter_async_context(TunnelClient(settings, identity(Side.DESTINATION)))
        endpoint = await client.open_endpoint(target, "127.0.0.1", 0)
        watching = asyncio.create_task(client.watch())
        undo.callback(watching.cancel)
        await until_all_are_well(client)
        for release, number in itertools.product((newer, older), (0, 1)):
            reader, writer = await carrying(endpoint)
            async with connecting(endpoint) as times:
                await vms[number].stop()
                vms[number] = await source_vm(release, variables[number], tmp_path)
                client.vms[number].condition = Condition.UNTRIED  # so that the next poll has to find it well
                await until_all_are_well(client)
            pauses[f"{release.version} on {number}"] = max(b - a for a, b in itertools.pairwise(times))
            if number:  # what the first one carries is not touched
                assert await carries(reader, writer)
            writer.close()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    with capsys.disabled():
        print(f"\nthe longest pause without a new connection, in seconds: {pauses}")
