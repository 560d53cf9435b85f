"""The page of both ends of the tunnel, between two gateways over real TLS."""

import asyncio
import contextlib
import json

import pytest

from appliance.gateway import command
from appliance.gateway.command import run_destination
from appliance.gateway.status import SourceStatus
from appliance.tunnel.server import TunnelServer
from bench.lib.running import OWN_ADDRESS
from tests.support.both_gateways import (
    both_sides,
    page,
    running,
    running_source,
    settings_for,
    status,
    status_when,
    through,
)
from tests.support.dns import addresses, resolve
from tests.support.exposition import samples
from tests.support.settings import SECRET
from tests.support.tunnel import carrying

OLDER = "the source VM's end is of an older release, which does not tell its status"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[SourceStatus]:
    """The documents that the source's end has made for the other one."""
    documents, make = [], SourceStatus.for_the_other_end

    def counted(self: SourceStatus) -> bytes:
        documents.append(self)
        return make(self)

    monkeypatch.setattr(SourceStatus, "for_the_other_end", counted)
    return documents


@pytest.mark.parametrize("by_ssh", [False, True], ids=["tcp", "ssh"])
async def test_the_destinations_page_has_both_ends_and_the_sources_its_own(tmp_path, ready, ssh_server, caplog, by_ssh):
    async with (
        ssh_server(tmp_path / "ssh") as ssh,
        both_sides(ready, **(through(ssh) if by_ssh else {})) as (port, shim),
    ):
        (address,) = addresses(await resolve(shim, "b7.pattern.example"))
        reader, writer = await asyncio.open_connection(address, port)
        writer.write(bytes(100_000))
        await reader.readexactly(100_000)
        await status_when(caplog, 1, lambda both: both["far"] is not None)
        # The next one was asked for after the bytes had gone through.
        both = await status_when(caplog, 1, lambda both: both["far"]["bytes"]["from_target"] >= 100_000)
        own = await status(caplog, 0)
        metrics = [samples(await page(caplog, where, "/metrics")) for where in (0, 1)]
        writer.close()
    near, far = both["near"], both["far"]
    assert (both["far_unknown"], both["at"] >= both["far_at"]) == (None, True)
    assert (near["side"], near["link"], near["carrier"]) == ("destination", "orange-grape", "ssh" if by_ssh else "tcp")
    assert (far["side"], far["link"], far["carrier"]) == ("source", "orange-grape", "tcp")
    assert far.keys() == own.keys()
    assert far["listening"] == {"address": "127.0.0.1", "port": near["server"]["port"]}
    assert {"address": address, "port": port, "broker": f"b7.pattern.example:{port}"} in near["endpoints"]
    assert near["server"]["reached"]
    for end in (near, far):
        assert end["connections"]["open"] - end["connections"]["waiting"] >= 1
        assert end["handshakes"]["count"] >= 1
        assert end["handshakes"]["p50_seconds"] > 0
    assert near["peer_certificate_days_left"] == far["certificate_days_left"]
    assert near["certificate_days_left"] == far["peer_certificate_days_left"]
    for found, end in zip(metrics, (far, near), strict=True):
        assert int(found["certificate_days_left",]) == end["certificate_days_left"]
        assert int(found["peer_certificate_days_left",]) == end["peer_certificate_days_left"]
    assert SECRET not in json.dumps([both, own])


async def test_many_who_look_at_once_make_one_request_and_nobody_who_looks_none(ready, caplog, made):
    async with both_sides(ready):
        for path in ("/health", "/metrics"):
            await page(caplog, 1, path)
        assert made == []
        looks = await asyncio.gather(*(status(caplog, 1) for _ in range(50)))
        assert {look["near"]["side"] for look in looks} == {"destination"}
        await status_when(caplog, 1, lambda both: both["far"] is not None)
        assert len(made) == 1


async def test_a_page_before_an_older_release_says_so_and_nothing_else_changes(ready, caplog, monkeypatch):
    monkeypatch.setattr(command, "TunnelServer", lambda *settings, **_status: TunnelServer(*settings))
    async with both_sides(ready):
        both = await status_when(caplog, 1, lambda both: (both["far_unknown"] or {}).get("reason") == OLDER)
        for _ in range(20):
            again = await status(caplog, 1)
        source = samples(await page(caplog, 0, "/metrics"))
        health = await page(caplog, 1, "/health")
    assert (both["far"], both["far_at"]) == (None, None)
    assert again["far_unknown"] == both["far_unknown"]
    assert not again["near"]["refused"]["target"]
    assert source["connections_refused_total", "target"] == 1
    assert "status" not in health
    assert len([message for message in caplog.messages if message.startswith("target refused")]) == 1


async def test_a_source_that_is_stopped_is_shown_as_it_was_with_the_time_since_which_it_is_unknown(ready, caplog):
    async with contextlib.AsyncExitStack() as source, contextlib.AsyncExitStack() as destination:
        port, tunnel_port = await source.enter_async_context(running_source(ready))
        await destination.enter_async_context(running(run_destination, settings_for(port, tunnel_port), ready))
        before = await status_when(caplog, 1, lambda both: both["far"] is not None)
        await source.aclose()
        after = await status_when(caplog, 1, lambda both: both["far_unknown"] is not None)
        again = await status(caplog, 1)
    assert after["far"]["since"] == before["far"]["since"]
    assert after["far_at"] >= before["far_at"]
    assert again["far_unknown"]["since"] == after["far_unknown"]["since"] > after["far_at"]
    assert after["near"]["side"] == "destination"


async def test_a_source_vm_that_is_away_is_a_remark_while_another_one_carries(ready, caplog):
    async with both_sides(ready, SOURCE_SIDE_TUNNEL_IP=f"127.0.0.1,{OWN_ADDRESS}") as (port, shim):
        (address,) = addresses(await resolve(shim, "b7.pattern.example"))
        _, writer = await carrying(port, address)

        def judged(both):
            return [vm["condition"] for vm in both["near"]["source_vms"]] == ["well", "failed"]

        both = await status_when(caplog, 1, judged)
        health = json.loads(await page(caplog, 1, "/health"))
        found = samples(await page(caplog, 1, "/metrics"))
        writer.close()
    well, away = both["near"]["source_vms"]
    assert (well["connections"], well["fault"], away["connections"]) == (1, None, 0)
    assert "connection refused" in away["fault"]
    assert well["since"] <= both["at"] >= away["since"]
    assert both["near"]["server"]["reached"]
    (remark,) = health["remarks"]
    assert remark.startswith(f"the source VM at {OWN_ADDRESS}:15060 is failed, another one carries: ")
    assert (found["source_vm_well", well["server"]], found["source_vm_well", away["server"]]) == (1, 0)
    assert found["server_reachable",] == 1
