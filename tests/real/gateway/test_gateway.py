"""Both VMs' gateways on one loopback: a client resolves a name and dials its address, and the broker answers."""

import asyncio
import socket
from dataclasses import replace

import pytest
from dnslib import RCODE, DNSRecord

from appliance.errors import SettingsError
from appliance.gateway import endpoints as endpoints_module
from appliance.gateway.command import run_destination, run_source
from appliance.runtime import background
from appliance.runtime.http import HttpServer
from appliance.settings.target import Target
from tests.support.both_gateways import both_sides, page, port_in, running, settings_for, through
from tests.support.dns import addresses, answer, ask_tcp, query, resolve, scripted_server
from tests.support.exposition import samples
from tests.support.patience import PATIENCE
from tests.support.tunnel import echo, target_server


@pytest.mark.parametrize("by_ssh", [False, True], ids=["tcp", "ssh"])
@pytest.mark.parametrize("name", ["b0.orange.example", "b7.pattern.example"])
async def test_a_broker_is_reached_by_its_own_name_and_port(tmp_path, ready, ssh_server, name, by_ssh):
    async with (
        ssh_server(tmp_path / "ssh") as ssh,
        both_sides(ready, **(through(ssh) if by_ssh else {})) as (port, shim),
    ):
        (address,) = addresses(await resolve(shim, name))
        reader, writer = await asyncio.open_connection(address, port)
        writer.write(b"metadata, please")
        writer.write_eof()
        assert await reader.read(-1) == b"metadata, please"
        writer.close()
    assert address.startswith("127.")
    assert address != "127.0.0.1"


async def test_allowed_names_beyond_the_endpoints_limit_are_answered_by_a_failure_and_not_forwarded(ready, monkeypatch):
    monkeypatch.setattr(endpoints_module, "ASKED_MAX", 2)
    asked = []

    async def knows_all(query):
        asked.append(str(DNSRecord.parse(query).q.qname))
        return [answer(query, "192.0.2.1")]

    async with scripted_server(knows_all) as upstream:
        settings = settings_for(9092)
        settings = replace(settings, dns=replace(settings.dns, upstream=upstream))
        async with running(run_destination, settings, ready) as destination:
            shim = port_in(destination["dns"])
            assert addresses(await resolve(shim, "elsewhere.example")) == ["192.0.2.1"]
            assert addresses(await resolve(shim, "b7.pattern.example"))
            for name in ("b8.pattern.example", "B9.Pattern.Example.", "a.b.pattern.example"):
                for kind in ("A", "AAAA", "HTTPS"):
                    assert (await resolve(shim, name, kind)).header.rcode == RCODE.SERVFAIL
                by_tcp = DNSRecord.parse((await ask_tcp(shim, query(name)))[0])
                assert by_tcp.header.rcode == RCODE.SERVFAIL
            assert addresses(await resolve(shim, "b7.pattern.example"))
    assert asked == ["elsewhere.example."]


async def test_both_ends_show_what_they_carry_while_they_carry_it(ready, caplog):
    async with both_sides(ready) as (port, shim):
        (address,) = addresses(await resolve(shim, "b7.pattern.example"))
        before = [samples(await page(caplog, where, "/metrics")) for where in (0, 1)]
        reader, writer = await asyncio.open_connection(address, port)
        writer.write(bytes(1_000_000))
        await reader.readexactly(1_000_000)
        after = [samples(await page(caplog, where, "/metrics")) for where in (0, 1)]
        writer.close()
    for old, new in zip(before, after, strict=True):
        for direction in ("to_target", "from_target"):
            # The watcher's attempts take the same path; for it an echo is not a broker.
            assert 0 <= new["bytes_total", direction] - old["bytes_total", direction] - 1_000_000 < 10_000
        assert new["connections_open",] - new["connections_waiting",] >= 1
    assert after[1]["dns_queries_total", "mapped"] == before[1]["dns_queries_total", "mapped"] == 1
    assert before[1]["endpoints_open",] == 2


async def test_a_target_that_is_no_broker_is_shown_as_such_and_carried_nevertheless(ready, caplog):
    async with both_sides(ready) as (port, shim):
        async with asyncio.timeout(PATIENCE):
            while "protocol" not in (health := await page(caplog, 1, "/health")):
                await asyncio.sleep(0.02)
        assert "check SOURCE_SECURITY_PROTOCOL=SASL_SSL" in health
        (address,) = addresses(await resolve(shim, "b0.orange.example"))
        reader, writer = await asyncio.open_connection(address, port)
        writer.write(b"still here")
        assert await reader.readexactly(10) == b"still here"
        writer.close()


async def test_a_status_port_that_is_taken_is_logged_once_and_served_when_it_is_free(ready, caplog, monkeypatch):
    attempts, start = 0, HttpServer.start

    async def attempt(server: HttpServer, variable: str, at: Target) -> Target:
        nonlocal attempts
        attempts += 1
        return await start(server, variable, at)

    monkeypatch.setattr(background, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(HttpServer, "start", attempt)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = settings_for(9092)
        settings = replace(settings, tunnel=replace(settings.tunnel, status=Target("127.0.0.1", port)))
        async with running(run_source, settings, ready):
            async with asyncio.timeout(PATIENCE):
                while attempts < 3:
                    await asyncio.sleep(0.01)
            taken.close()
            assert '"troubles": []' in await page(caplog, 0, "/health")
    (line,) = [message for message in caplog.messages if "TUNNEL_STATUS_LISTEN" in message]
    assert f"cannot listen on 127.0.0.1:{port}: address already in use" in line


async def test_a_port_that_the_source_cannot_have_is_one_clear_line():
    async with target_server(echo) as taken:
        with pytest.raises(SettingsError, match="TUNNEL_LISTEN, TUNNEL_PORT: cannot listen"):
            await run_source(settings_for(9092, taken), asyncio.Event())


async def test_a_port_that_the_destination_cannot_have_is_one_clear_line_and_leaves_nothing_open(ready):
    settings = settings_for(9092)
    unfit = replace(settings, dns=replace(settings.dns, listen=Target("192.0.2.1", 0)))
    before = asyncio.all_tasks()
    with pytest.raises(SettingsError, match="DNS_LISTEN"):
        await run_destination(unfit, asyncio.Event())
    assert asyncio.all_tasks() == before
    async with running(run_destination, settings, ready):
        pass
