"""A diagnosis of a tunnel with faulty settings, clock, port or identities; no brokers are needed."""

import asyncio
import contextlib
import os
import socket
import ssl
import time
from dataclasses import asdict

import pytest

from appliance.doctor.step import Verdict
from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tls.certificates import authority_key
from appliance.tls.first_flight import TokenKeys
from appliance.tls.identity import Identity
from appliance.tunnel.model.connect import Timeouts
from bench.lib.running import OWN_ADDRESS, free_port
from testbed.certificates import CertificateAuthority
from tests.support.authority import DAY, Authority, write_files
from tests.support.doctor import diagnosis, finding, with_verdict
from tests.support.gateway import gateway_variables
from tests.support.settings import write_settings
from tests.support.ssh import new_key, write_public
from tests.support.tls import identity, key_of, running_server
from tests.support.tunnel import HOST, LINK, SECRET, target_server, tunnel_settings

OTHER_SECRET = "another-9fTz2kLq8wXe4vBn6mRc1yUaQ7hJ"
HOURS = DAY / 24
UNUSED = Target(HOST, 9093)
CLOSED = {"SOURCE_SIDE_TUNNEL_IP": OWN_ADDRESS, "TUNNEL_LISTEN": OWN_ADDRESS}
"""An address without listeners: no other process takes its free ports."""
SILENCE = 0.3
"""Timeout of the unanswered step, in seconds; the other steps have as long as they need."""


def variables(port, **changed):
    """The settings of a link on loopback whose clusters do not run."""
    away = {
        "SOURCE_SIDE_TUNNEL_IP": "127.0.0.1",
        "TUNNEL_LISTEN": "127.0.0.1",
        "DESTINATION_BROKER_SERVERS": f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}",
        "DNS_LISTEN": f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}",
        "REPLICA_TOPICS_SOURCE_REGEX": "orders",
        "REPLICA_TOPICS_DEST_SUFFIX": "copy",
    }
    return gateway_variables(9093, port) | away | changed


async def broken(tmp_path, port, side=Side.DESTINATION, timeouts=None, **changed):
    """The first failed step of the tunnel, its text, and the steps before it."""
    report = await diagnosis(tmp_path, variables(port, **changed), side, timeouts)
    step = with_verdict(report, Verdict.FAILED)[0]
    names = [result.name for result in report.results]
    later = names[names.index(step) + 1 : names.index("destination: DNS") if side is Side.DESTINATION else 4]
    assert set(later) <= set(with_verdict(report, Verdict.NOT_REACHED)) | {"tunnel port", "mutual TLS"}
    assert not report.well
    return step, finding(report, step)


@pytest.mark.parametrize("side", Side)
async def test_all_faults_of_the_settings_are_told_and_no_step_is_tried(tmp_path, side):
    report = await diagnosis(tmp_path, variables(9999, TUNNEL_PORT="x", SHARED_SECRET="weak"), side)
    assert with_verdict(report, Verdict.FAILED) == ["settings"]
    assert len(with_verdict(report, Verdict.NOT_REACHED)) == len(report.results) - 1
    assert "TUNNEL_PORT=x" in finding(report, "settings").detail
    assert "SHARED_SECRET" in finding(report, "settings").detail


async def test_a_file_that_the_settings_name_belongs_to_them(tmp_path):
    step, found = await broken(tmp_path, 9999, SOURCE_CA_FILE="/nowhere/ca.pem")
    assert step == "settings"
    assert "SOURCE_CA_FILE=/nowhere/ca.pem" in found.detail


@pytest.mark.parametrize("side", Side)
async def test_a_clock_that_is_before_the_settings_were_written_is_behind(tmp_path, side, monkeypatch):
    path = write_settings(tmp_path / "setenv.sh", variables(free_port(OWN_ADDRESS), **CLOSED))
    monkeypatch.setattr("tests.support.doctor.write_settings", lambda *_: path)
    os.utime(path, (time.time() + 86400,) * 2)
    report = await diagnosis(tmp_path, {}, side)
    assert with_verdict(report, Verdict.FAILED)[0] == "clock"
    assert "NTP" in finding(report, "clock").remedy


async def test_a_closed_port_is_told_on_both_vms(tmp_path):
    step, found = await broken(tmp_path, free_port(OWN_ADDRESS), **CLOSED)
    assert (step, found.remedy.partition(":")[0]) == ("tunnel port", "closed")
    assert "start `appliance source` on the source VM" in found.remedy
    step, found = await broken(tmp_path, free_port(OWN_ADDRESS), Side.SOURCE, **CLOSED)
    assert (step, "start `appliance source` on this VM" in found.remedy) == ("tunnel port", True)


async def test_each_source_vm_is_tried_and_one_that_is_away_is_a_warning_beside_another(tmp_path):
    async with running_server(UNUSED) as server:
        both = variables(server.port, SOURCE_SIDE_TUNNEL_IP=f"{OWN_ADDRESS},127.0.0.1")
        report = await diagnosis(tmp_path, both)
    port, trusted = finding(report, "tunnel port"), finding(report, "mutual TLS")
    assert (port.verdict, port.remedy.partition(":")[0]) == (Verdict.WARNING, "closed")
    assert f"{OWN_ADDRESS}:{server.port}: " in port.detail
    assert f"127.0.0.1:{server.port}: the tunnel server answers" in port.detail
    assert trusted.verdict is Verdict.PASSED
    away = await diagnosis(tmp_path, both)
    assert finding(away, "tunnel port").verdict is Verdict.FAILED
    assert finding(away, "mutual TLS").verdict is Verdict.NOT_REACHED


async def test_a_filtered_port_is_told_with_the_rule_that_lets_in(tmp_path):
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.socket())
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        for _ in range(4):  # now its backlog is full: the kernel drops packets, as a firewall does
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(silent.getsockname())
        step, found = await broken(tmp_path, silent.getsockname()[1], timeouts=Timeouts(dial=SILENCE))
    assert (step, found.remedy.partition(":")[0]) == ("tunnel port", "filtered")
    assert f"let TCP port {silent_port(found)} in" in found.remedy
    assert "DESTINATION_SIDE_TUNNEL_IP=" in found.remedy


def silent_port(found):
    """The port of a finding."""
    return found.detail.partition(" port ")[2].partition(" ")[0]


async def web_server(_reader, writer):
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await writer.drain()


async def silence(reader, _writer):
    await reader.read(-1)


@pytest.mark.parametrize("handler", [web_server, silence])
@pytest.mark.parametrize("side", Side)
async def test_another_program_at_the_port_is_told(tmp_path, handler, side):
    async with target_server(handler) as port:
        timeouts = Timeouts(handshake=SILENCE) if handler is silence else None
        step, found = await broken(tmp_path, port, side, timeouts)
    assert step == "tunnel port"
    assert ("another program has TUNNEL_PORT" if side is Side.SOURCE else "wrong machine") in found.remedy


async def test_another_tls_server_is_no_wrong_secret(tmp_path):
    pem = tmp_path / "other.pem"
    pem.write_bytes(CertificateAuthority.create("other").issue(("127.0.0.1",)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = await asyncio.start_server(silence, "127.0.0.1", 0, ssl=context)
    async with server:
        step, found = await broken(tmp_path, server.sockets[0].getsockname()[1])
    assert (step, "wrong machine" in found.remedy) == ("tunnel port", True)


@pytest.mark.parametrize(
    ("side", "changed", "remedy"),
    [
        *((side, {"SHARED_SECRET": OTHER_SECRET}, "set the same SHARED_SECRET") for side in Side),
        (Side.DESTINATION, {"TUNNEL_KEY_EXCHANGE": "p-256"}, "TUNNEL_KEY_EXCHANGE"),
        (Side.DESTINATION, {"DESTINATION_CLUSTER_ID": "melon"}, "DESTINATION_CLUSTER_ID"),
    ],
)
async def test_another_secret_key_exchange_or_link_is_told(tmp_path, side, changed, remedy):
    async with running_server(UNUSED) as server:
        step, found = await broken(tmp_path, server.port, side, **changed)
    assert (step, remedy in found.remedy) == ("mutual TLS", True)


def end_at(side, begins):
    """An end that knows the secret, and whose certificate begins that much later than now."""
    authority = Authority(LINK, authority_key(key_of()))
    return Identity(LINK, side, (TokenKeys.of(key_of()), authority.credentials(authority.leaf(side, begins=begins))))


async def test_a_server_that_is_hours_ahead_is_clock_skew_and_no_wrong_secret(tmp_path):
    async with running_server(UNUSED, end=end_at(Side.SOURCE, 2 * HOURS)) as server:
        step, found = await broken(tmp_path, server.port)
    assert (step, found.remedy.partition(":")[0]) == ("mutual TLS", "clock skew")
    assert "clock is behind" in found.remedy


async def test_a_server_that_is_hours_behind_is_clock_skew_and_no_wrong_secret(tmp_path, monkeypatch):
    end = end_at(Side.DESTINATION, 2 * HOURS)
    monkeypatch.setattr(Identity, "of", lambda *_: end)
    async with running_server(UNUSED, end=identity(Side.SOURCE)) as server:
        step, found = await broken(tmp_path, server.port)
    assert (step, found.remedy.partition(":")[0]) == ("mutual TLS", "clock skew")
    assert "clock is ahead" in found.remedy


@pytest.mark.parametrize(
    ("skew", "verdict"), [(100, Verdict.FAILED), (-100, Verdict.FAILED), (60, Verdict.WARNING), (-5, Verdict.PASSED)]
)
async def test_clocks_that_differ_by_less_are_measured(tmp_path, skew, verdict):
    async with running_server(UNUSED, clock=lambda: time.time() + skew) as server:
        found = finding(await diagnosis(tmp_path, variables(server.port)), "mutual TLS")
    assert found.verdict is verdict
    assert ("ahead" if skew > 0 else "behind") in found.detail
    assert ("clock skew" in found.remedy) is (verdict is not Verdict.PASSED)


@pytest.mark.parametrize(
    ("minutes", "said", "previous"),
    [
        (7, "8 minutes ahead of", ""),
        (-31, "32 minutes behind", ""),
        (-120, "120 minutes behind", ""),
        (330, "330 minutes ahead of", OTHER_SECRET),  # while the secret is being changed
    ],
)
async def test_clocks_so_far_apart_that_the_server_says_nothing_are_told_by_how_far(tmp_path, minutes, said, previous):
    async with running_server(UNUSED, clock=lambda: time.time() + 60 * minutes) as server:
        step, found = await broken(tmp_path, server.port, SHARED_SECRET=SECRET, SHARED_SECRET_PREVIOUS=previous)
    assert (step, found.remedy.partition(":")[0]) == ("mutual TLS", "clock skew")
    assert said in found.detail


async def test_the_secret_before_is_good_enough_while_it_is_being_changed(tmp_path):
    changing = {"SHARED_SECRET": OTHER_SECRET, "SHARED_SECRET_PREVIOUS": SECRET}
    async with running_server(UNUSED) as server:
        report = await diagnosis(tmp_path, variables(server.port, **changing))
    assert finding(report, "mutual TLS").verdict is Verdict.WARNING
    assert "remove it" in finding(report, "mutual TLS").remedy


@pytest.mark.parametrize("soon", Side)
async def test_a_certificate_that_ends_soon_is_told_whichever_vms_it_is(tmp_path, soon):
    authority = Authority()
    lasts = {side: (10 if side is soon else 400) * DAY for side in Side}
    files = {
        side: write_files(tmp_path / side, authority.pem, authority.leaf(side, lasts=lasts[side])) for side in Side
    }
    named = {f"TUNNEL_{kind.upper()}_FILE": str(path) for kind, path in asdict(files[Side.DESTINATION]).items()}
    end = Identity.of(tunnel_settings(files=files[Side.SOURCE]), Side.SOURCE)
    async with running_server(UNUSED, end=end) as server:
        found = finding(await diagnosis(tmp_path, variables(server.port, **named)), "mutual TLS")
    assert (found.verdict, found.detail) == (Verdict.WARNING, f"the certificate of the {soon} VM ends in 9 days")
    assert "TUNNEL_CERTIFICATE_FILE" in found.remedy


async def test_a_source_vm_with_its_identity_in_files_knows_that_something_listens(tmp_path):
    authority = Authority()
    files = write_files(tmp_path, authority.pem, authority.leaf(Side.SOURCE))
    named = {
        "TUNNEL_AUTHORITY_FILE": str(files.authority),
        "TUNNEL_CERTIFICATE_FILE": str(files.certificate),
        "TUNNEL_KEY_FILE": str(files.key),
    }
    async with running_server(UNUSED) as server:
        report = await diagnosis(tmp_path, variables(server.port, **named), Side.SOURCE)
    assert finding(report, "tunnel port").verdict is Verdict.PASSED
    assert finding(report, "mutual TLS").verdict is Verdict.SKIPPED
    step, found = await broken(tmp_path, server.port, Side.SOURCE, **named)
    assert (step, "start `appliance source`" in found.remedy) == ("tunnel port", True)


def by_ssh(server, own=None):
    """The settings of a tunnel that an SSH server carries, with the server's host keys or others."""
    return {
        "TUNNEL_SSH": f"{server.user}@127.0.0.1:{server.port}",
        "TUNNEL_SSH_KEY_FILE": str(server.files.key),
        "TUNNEL_SSH_HOST_KEYS_FILE": str(own or server.files.host_keys),
    }


SSH_STEPS = ["SSH server", "SSH forward", "tunnel port", "mutual TLS"]


async def test_a_tunnel_inside_ssh_is_tried_step_by_step(tmp_path, ssh_server):
    async with ssh_server(tmp_path / "ssh") as ssh, running_server(UNUSED) as server:
        report = await diagnosis(tmp_path, variables(server.port, **by_ssh(ssh)))
        assert set(SSH_STEPS) <= set(with_verdict(report, Verdict.PASSED))
        assert f"through {ssh.user}@127.0.0.1:{ssh.port}" in finding(report, "settings").detail
        step, found = await broken(tmp_path, server.port, SHARED_SECRET=OTHER_SECRET, **by_ssh(ssh))
        assert (step, found.remedy.startswith("set the same SHARED_SECRET")) == ("mutual TLS", True)
    assert not {"SSH server", "SSH forward"} & {result.name for result in (await without_ssh(tmp_path)).results}


async def without_ssh(tmp_path):
    async with running_server(UNUSED) as server:
        return await diagnosis(tmp_path, variables(server.port))


async def test_an_ssh_server_that_is_away_or_somebody_else_or_shut_is_told_at_its_own_step(tmp_path, ssh_server):
    async with ssh_server(tmp_path / "ssh") as ssh:
        other = write_public(tmp_path / "other", new_key())
        step, found = await broken(tmp_path, 9, **by_ssh(ssh, other))
        assert (step, "TUNNEL_SSH_HOST_KEYS_FILE" in found.remedy) == ("SSH server", True)
        write_public(tmp_path / "ssh" / "authorized", new_key())
        step, found = await broken(tmp_path, 9, **by_ssh(ssh))
        assert (step, "authorized_keys" in found.remedy) == ("SSH server", True)
    step, found = await broken(tmp_path, 9, **by_ssh(ssh))
    assert (step, found.remedy.partition(":")[0]) == ("SSH server", "SSH server unreachable")


async def test_an_ssh_server_that_does_not_forward_or_does_not_reach_the_tunnel_is_told(tmp_path, ssh_server):
    async with ssh_server(tmp_path / "ssh", "127.0.0.1:9") as ssh, running_server(UNUSED) as server:
        step, found = await broken(tmp_path, server.port, **by_ssh(ssh))
        assert (step, "PermitOpen" in found.remedy) == ("SSH forward", True)
        step, found = await broken(tmp_path, 9, **by_ssh(ssh))
        assert (step, "TUNNEL_LISTEN=127.0.0.1" in found.remedy) == ("SSH forward", True)
    async with ssh_server(tmp_path / "bastion") as bastion:
        step, found = await broken(tmp_path, 9, SOURCE_SIDE_TUNNEL_IP=OWN_ADDRESS, **by_ssh(bastion))
        assert (step, f"SOURCE_SIDE_TUNNEL_IP={OWN_ADDRESS}" in found.remedy) == ("SSH forward", True)


async def test_a_source_vm_that_waits_for_its_own_sshd_is_tried_on_loopback_without_ssh(tmp_path):
    async with running_server(UNUSED) as server:
        own = {"TUNNEL_SSH": "tunnel@127.0.0.1:22", "TUNNEL_LISTEN": ""}
        report = await diagnosis(tmp_path, variables(server.port, **own), Side.SOURCE)
    assert {"tunnel port", "mutual TLS"} <= set(with_verdict(report, Verdict.PASSED))
