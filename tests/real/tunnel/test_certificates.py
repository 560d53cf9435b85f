"""An identity from files that changes while connections are open, and a change of the shared secret."""

import asyncio
import contextlib
import dataclasses

import pytest

from appliance.errors import SettingsError
from appliance.gateway.command import run_destination, run_source
from appliance.settings.parse import parse
from appliance.settings.role import TUNNEL_ENDS
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tls import identity
from appliance.tls.identity import Identity
from appliance.tunnel import certificate_reload
from appliance.tunnel.certificate_reload import CertificateReload
from appliance.tunnel.limits.counters import Refusal
from tests.support.authority import DAY, Authority, replace, write_files
from tests.support.carrying import echoed
from tests.support.gateway import gateway_variables
from tests.support.patience import PATIENCE
from tests.support.tls import running_client, running_server
from tests.support.tunnel import HOST, carries, carrying, echo, target_server, tunnel_settings

SIDES = (Side.SOURCE, Side.DESTINATION)


@pytest.fixture(autouse=True)
def look_often(monkeypatch):
    monkeypatch.setattr(certificate_reload, "CHECK_SECONDS", 0.01)


@contextlib.asynccontextmanager
async def link_with_files(directory, authority):
    """Both ends with certificates of ``authority``, its files under ``directory`` / side, and an endpoint."""
    ends = {}
    async with contextlib.AsyncExitStack() as stack:
        for side in SIDES:
            files = write_files(directory / side, authority.pem, authority.leaf(side))
            ends[side] = await stack.enter_async_context(CertificateReload(tunnel_settings(files=files), side))
        target = Target(HOST, await stack.enter_async_context(target_server(echo)))
        server = await stack.enter_async_context(running_server(target, end=ends[Side.SOURCE]))
        client = running_client(target, server.port, ends[Side.DESTINATION])
        _, endpoint = await stack.enter_async_context(client)
        yield ends, endpoint


async def works(endpoint):
    """True if a new connection is carried."""
    return await echoed(endpoint) == b"x"


@contextlib.asynccontextmanager
async def taken(end):
    """A block that changes files; it ends when ``end`` has loaded them."""
    before = end.tls.context
    yield
    async with asyncio.timeout(PATIENCE):
        while end.tls.context is before:
            await asyncio.sleep(0.01)


async def told(caplog, text):
    async with asyncio.timeout(PATIENCE):
        while not any(text in message for message in caplog.messages):
            await asyncio.sleep(0.01)


async def test_a_renewed_certificate_is_for_new_connections_and_those_that_stand_go_on(tmp_path):
    authority = Authority()
    async with link_with_files(tmp_path, authority) as (ends, endpoint):
        standing = await carrying(endpoint)
        for side in SIDES:
            async with taken(ends[side]):
                write_files(tmp_path / side, authority.pem, authority.leaf(side))
            assert await works(endpoint)
        assert await carries(*standing)
        standing[1].close()


async def test_an_authority_is_changed_by_way_of_both_and_no_connection_is_refused(tmp_path):
    old, new = Authority(), Authority("another name")
    both = old.pem + new.pem
    steps = [
        (Side.SOURCE, both, old),
        (Side.DESTINATION, both, new),
        (Side.SOURCE, both, new),
        (Side.DESTINATION, new.pem, new),
        (Side.SOURCE, new.pem, new),
    ]
    async with link_with_files(tmp_path, old) as (ends, endpoint):
        standing = await carrying(endpoint)
        for side, believed, signer in steps:
            async with taken(ends[side]):
                write_files(tmp_path / side, believed, signer.leaf(side))
            assert await works(endpoint)
            assert await carries(*standing)
        standing[1].close()


async def test_half_of_a_new_set_changes_nothing_is_logged_once_and_the_whole_is_taken(tmp_path, caplog):
    caplog.set_level("INFO")
    authority = Authority()
    leaf = authority.leaf(Side.SOURCE)
    async with link_with_files(tmp_path, authority) as (ends, endpoint):
        end = ends[Side.SOURCE]
        before = end.tls.context
        replace(tmp_path / Side.SOURCE / "key.pem", leaf.key)
        await told(caplog, "new certificate files not taken yet")
        await asyncio.sleep(0.1)
        assert end.tls.context is before
        assert await works(endpoint)
        async with taken(end):
            replace(tmp_path / Side.SOURCE / "certificate.pem", leaf.certificate)
        assert await works(endpoint)
    assert [message for message in caplog.messages if "certificate files" in message] == [
        "new certificate files not taken yet",
        "certificate files taken",
    ]
    (cause,) = [record.fields["cause"] for record in caplog.records if "not taken yet" in record.message]
    assert "TUNNEL_KEY_FILE" in cause


async def test_a_key_that_becomes_private_is_taken_without_being_written_again(tmp_path, caplog):
    authority = Authority()
    async with link_with_files(tmp_path, authority) as (ends, _):
        leaf, key = authority.leaf(Side.SOURCE), tmp_path / Side.SOURCE / "key.pem"
        replace(key, leaf.key, mode=0o644)
        replace(tmp_path / Side.SOURCE / "certificate.pem", leaf.certificate)
        await told(caplog, "not taken yet")
        async with taken(ends[Side.SOURCE]):
            key.chmod(0o600)


async def test_case_12_files_that_are_replaced_while_an_end_starts_are_taken(tmp_path, monkeypatch, caplog):
    def read_and_be_overtaken(*which):
        read = identity_read(*which)
        write_files(tmp_path, authority.pem, authority.leaf(Side.DESTINATION))
        return read

    caplog.set_level("INFO")
    authority, identity_read = Authority(), identity.read_credentials
    files = write_files(tmp_path, authority.pem, authority.leaf(Side.DESTINATION))
    monkeypatch.setattr(identity, "read_credentials", read_and_be_overtaken)
    async with CertificateReload(tunnel_settings(files=files), Side.DESTINATION):
        await told(caplog, "certificate files taken")


async def test_a_certificate_that_ends_soon_is_logged_once_at_the_start_and_again_by_one_that_does(tmp_path, caplog):
    authority = Authority()
    files = write_files(tmp_path, authority.pem, authority.leaf(Side.SOURCE, lasts=20 * DAY))
    async with CertificateReload(tunnel_settings(files=files), Side.SOURCE) as end:
        assert [record.fields for record in caplog.records] == [{"days_left": 18}]
        async with taken(end):
            write_files(tmp_path, authority.pem, authority.leaf(Side.SOURCE, lasts=400 * DAY))
        async with taken(end):
            write_files(tmp_path, authority.pem, authority.leaf(Side.SOURCE, lasts=10 * DAY))
    told_of_days = [record for record in caplog.records if "days_left" in record.fields]  # or of a file half replaced
    assert [record.fields for record in told_of_days] == [{"days_left": 18}, {"days_left": 8}]
    assert all("TUNNEL_CERTIFICATE_FILE" in record.message for record in told_of_days)


@pytest.mark.parametrize(("side", "run"), [(Side.SOURCE, run_source), (Side.DESTINATION, run_destination)])
async def test_an_end_does_not_start_with_the_certificate_of_the_other(side, run, tmp_path):
    files = write_files(tmp_path, Authority().pem, Authority().leaf(next(other for other in SIDES if other != side)))
    named = {f"TUNNEL_{kind.upper()}_FILE": str(path) for kind, path in dataclasses.asdict(files).items()}
    settings = parse(gateway_variables(9092, 15060, **named), TUNNEL_ENDS)
    with pytest.raises(SettingsError) as refusal:
        await run(settings, asyncio.Event())
    expected = f"expected the URI replicator-link://orange-grape/{side}, and no other one"
    assert f"TUNNEL_CERTIFICATE_FILE={files.certificate}: {expected}" in str(refusal.value)


OLD, NEW = "previous-pQ7sVw4xZ1aB8cD3eF6hJ0kL5mR", "next-uYw0kTq3sVxG8mJb2nRz5cEaD7fH9gL"


def end_with(side, secret, previous=""):
    return Identity.of(tunnel_settings(secret=Secret(secret), previous_secret=Secret(previous)), side)


async def test_a_secret_is_changed_in_three_steps_and_each_costs_a_moment_at_most(caplog):
    caplog.set_level("INFO")
    steps = [
        (end_with(Side.SOURCE, OLD), end_with(Side.DESTINATION, NEW, OLD)),
        (end_with(Side.SOURCE, NEW), None),
        (None, end_with(Side.DESTINATION, NEW)),
    ]
    source, destination = end_with(Side.SOURCE, OLD), end_with(Side.DESTINATION, OLD)
    async with target_server(echo) as port:
        target = Target(HOST, port)
        for new_source, new_destination in steps:
            source, destination = new_source or source, new_destination or destination
            async with (
                running_server(target, end=source) as server,
                running_client(target, server.port, destination) as (_, endpoint),
                asyncio.timeout(PATIENCE),
            ):
                while not await works(endpoint):
                    await asyncio.sleep(0.02)
                assert await works(endpoint)
    swaps = [message for message in caplog.messages if message.startswith("trying the other of SHARED_SECRET")]
    assert len(swaps) == 2


async def test_a_previous_secret_does_not_let_a_stranger_in(caplog):
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with (
            running_server(target, end=end_with(Side.SOURCE, "another-9fTz2kLq8wXe4vBn6mRc1yUa")) as server,
            running_client(target, server.port, end_with(Side.DESTINATION, NEW, OLD)) as (_, endpoint),
        ):
            for _ in range(20):
                assert not await works(endpoint)
                await asyncio.sleep(0.02)
    assert any(message.startswith("tunnel refused, the server hung up") for message in caplog.messages)


async def test_a_previous_secret_has_had_its_day_once_the_source_has_the_new_one(caplog):
    """From then on, a thief of the old secret must not be accepted as the source."""
    caplog.set_level("INFO")
    destination = end_with(Side.DESTINATION, NEW, OLD)
    assert await carried_by(OLD, destination)
    assert destination.accepts_previous
    assert await carried_by(NEW, destination)
    assert not destination.accepts_previous
    assert not await carried_by(OLD, destination)
    assert any(message.endswith("remove SHARED_SECRET_PREVIOUS") for message in caplog.messages)


async def carried_by(secret, destination):
    """True if a source with ``secret`` carries a connection from ``destination`` within a few tries."""
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with (
            running_server(target, end=end_with(Side.SOURCE, secret)) as server,
            running_client(target, server.port, destination) as (client, endpoint),
        ):
            while not await works(endpoint):
                if client.counters.refused[Refusal.IDENTITY] > 3:
                    return False
                await asyncio.sleep(0.02)
            return True
