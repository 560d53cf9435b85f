"""The rights of a container, the visibility of its secrets, and the reach of its pages."""

import ipaddress
import re
import sys
from pathlib import Path

import pytest

from tests.containers.link import Link, Service
from tests.containers.sites import GRAPE, ORANGE

OPEN = ("0.0.0.0", 15060)

_ASK = (
    "import http.client, sys; page = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=5); "
    "page.request('GET', '/health'); print(page.getresponse().read().decode())"
)
_LOOK = """
import os, pathlib
for process in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        if b"appliance.cli" in (process / "cmdline").read_bytes() and int(process.name) != os.getpid():
            (process / "environ").read_bytes()
            print("read")
    except PermissionError as error:
        print(error.strerror)
    except (FileNotFoundError, ProcessLookupError):
        pass
"""
_KNOCK = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"


@pytest.fixture(params=["tunnel", "gateway", "replicator", "control-center"])
def service(link: Link, request: pytest.FixtureRequest) -> Service:
    return next(service for service in (*link.services, link.control_center) if service.name == request.param)


def files_with(link: Link) -> list[Path]:
    """The files of the prepare scripts that other users may read."""
    folders = (link.folder(ORANGE), link.folder(GRAPE))
    written = [path for folder in folders for path in [folder / ".env", *folder.glob("prepared/*")]]
    return [path for path in written if path.stat().st_mode & 0o077]


def published(service: Service) -> list[tuple[str, int]]:
    """The addresses and ports of the VM that lead into a container."""
    found = service.inspected()["NetworkSettings"]["Ports"].values()
    return sorted((at["HostIp"], int(at["HostPort"])) for bound in found for at in bound or [])


def test_no_process_is_root(service: Service) -> None:
    listed = service.engine.docker("top", service.container, "-eo", "pid,uid,args").splitlines()[1:]
    assert {line.split()[1] for line in listed} == {"10001"}, listed
    assert any("docker-init" in line for line in listed)


def test_no_capability_is_left_and_none_can_be_had(service: Service) -> None:
    status = service.inside("cat", "/proc/1/status").stdout
    assert set(re.findall(r"^Cap\w+:\t(\w+)$", status, re.MULTILINE)) == {"0" * 16}
    assert "\nNoNewPrivs:\t1\n" in status


def test_nothing_can_be_written_but_scratch(service: Service) -> None:
    found = service.inside("sh", "-c", "find / -xdev -writable ! -type l 2>/dev/null").stdout.split()
    # The sockets by which the VM's control centers find each other, and the charts.
    own = {"/run/links", "/var/tmp"} if service.name == "control-center" else set()
    assert set(found) == {"/tmp"} | own
    assert "Read-only file system" in service.inside("touch", "/opt/appliance/x").stderr
    assert service.inside("touch", "/tmp/x").returncode == 0


def test_nobody_in_the_container_but_its_user_reads_its_settings(service: Service) -> None:
    assert service.inside("head", "-c1", "/etc/appliance/setenv.sh").stdout == "#"
    as_another = ("docker", "exec", "--user", "10002", service.container, "cat", "/etc/appliance/setenv.sh")
    assert "Permission denied" in service.engine.run(*as_another).stderr


def test_no_core_is_dumped_and_its_user_reads_no_memory_of_it(service: Service) -> None:
    limits = service.inside("cat", "/proc/1/limits").stdout
    assert re.search(r"^Max core file size +0 +0 ", limits, re.MULTILINE)
    looked = service.inside("python", "-c", _LOOK).stdout.splitlines()
    assert looked
    assert set(looked) == {"Permission denied"}


def test_the_ends_of_the_tunnel_are_confined_to_what_they_read(link: Link) -> None:
    tunnel, gateway, _ = link.services
    for end in (tunnel, gateway):
        assert re.search("files confined landlock=[1-9]", end.log())


def test_only_the_tunnels_ends_have_the_shared_secret(link: Link) -> None:
    holding = {
        service.name
        for service in (*link.services, link.control_center)
        if link.secret in service.inside("cat", "/etc/appliance/setenv.sh").stdout
    }
    assert holding == {"tunnel", "gateway"}


def test_its_log_is_rotated_its_memory_bounded_and_it_starts_again(service: Service) -> None:
    host = service.inspected()["HostConfig"]
    assert host["LogConfig"] == {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "5"}}
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    assert host["Memory"] > 0
    assert not service.inspected()["State"]["OOMKilled"]


def test_its_processes_are_bounded_with_room_for_four_times_as_many(service: Service) -> None:
    listed = service.engine.docker("top", service.container, "-eLo", "pid,lwp").splitlines()[1:]
    limit = service.inspected()["HostConfig"]["PidsLimit"]
    assert 4 * len(listed) <= limit


def test_no_secret_is_where_others_see_it(link: Link, service: Service) -> None:
    shown = [
        service.engine.docker("inspect", service.container),
        service.engine.docker("inspect", link.image),
        service.engine.docker("history", "--no-trunc", link.image),
        service.log(),
        *(path.read_text() for path in files_with(link)),
    ]
    assert len(shown) > 6
    assert not [secret for secret in link.secrets for text in shown if secret in text]


@pytest.mark.asyncio(loop_scope="session")
async def test_pages_are_on_the_loopback_of_their_vm_where_the_other_vm_does_not_reach_them(link: Link) -> None:
    tunnel, gateway, replicator = link.services
    for answering in (tunnel, gateway, replicator, link.control_center):
        await answering.wait_until("healthy")
    for service, other in ((tunnel, GRAPE), (gateway, ORANGE)):
        here, there = link.vpcs.machines[service.side.name].vm, link.vpcs.machines[other.name].vm
        pages = [at for at in published(service) if at != OPEN]
        assert pages
        for host, port in pages:
            assert ipaddress.ip_address(host).is_loopback
            assert "troubles" in here.say(sys.executable, "-c", _ASK, host, str(port))
            assert "refused" in there.run(sys.executable, "-c", _KNOCK, service.side.vm, str(port)).stderr


def test_one_port_is_open_to_others_and_it_is_the_tunnels(link: Link) -> None:
    tunnel, gateway, _ = link.services
    assert OPEN in published(tunnel)
    assert OPEN not in published(gateway)
    there = link.vpcs.machines[GRAPE.name].vm
    there.say(sys.executable, "-c", _KNOCK, ORANGE.vm, str(OPEN[1]))


def test_the_replicator_asks_the_shim_for_both_sides_brokers(link: Link) -> None:
    *_, replicator = link.services
    found = replicator.inside("getent", "ahostsv4", "b1.orange.example").stdout.split()
    assert ipaddress.ip_address(found[0]) in ipaddress.ip_network("127.64.0.0/10")
    assert replicator.inside("getent", "ahostsv4", "b0.grape.example").stdout.split()[0] == "10.2.0.10"
