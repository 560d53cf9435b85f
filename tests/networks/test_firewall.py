"""The rules of ``--firewall nftables`` in a kernel: only the peer passes, by IPv4 and by IPv6.

A dropped packet causes no event. So two chains of the test count the packets before and after the printed rules; both
see a packet at once.
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from appliance.settings.order import parse_order
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.values import Side
from deploy.render.firewall import ready
from tests.support.namespace import Namespace, namespaces
from tests.support.order import ORDER
from tests.support.patience import PATIENCE
from tests.support.settings import REQUIRED

TUNNEL, BROKER, OTHER, SSH = 15060, 9092, 9999, 22
VM = {"ip": "10.77.1.1", "ip6": "fd77:1::1"}
PEER = {"ip": "10.77.1.2", "ip6": "fd77:1::2"}
STRANGER = {"ip": "10.77.1.3", "ip6": "fd77:1::3"}
FAMILIES = ("ip", "ip6")

CLOSED = """
table inet filter {
    chain input { type filter hook input priority filter; policy drop; ct state established,related accept; RULES; }
    chain output { type filter hook output priority filter; policy drop; ct state established,related accept; RULES; }
}
""".replace("RULES", "meta l4proto ipv6-icmp accept")
"""A VM whose user drops all other packets; IPv6 needs neighbour discovery."""
TRACKING = """
table inet tracking { chain tracks { type filter hook prerouting priority -160; ct state established accept; }; }
"""
"""A rule that makes the kernel track connections, as Docker's rules do from its start."""
COUNTING = """
table inet counting {
    chain came { type filter hook prerouting priority -160; tcp flags & (syn | ack) == syn jump here; }
    chain passed { type filter hook input priority 10; tcp flags & (syn | ack) == syn jump inside; }
    chain left { type filter hook output priority -10; tcp flags & (syn | ack) == syn jump begun; }
    chain gone { type filter hook postrouting priority 10; tcp flags & (syn | ack) == syn jump outside; }
    chain here { counter; }
    chain inside { counter; }
    chain begun { counter; }
    chain outside { counter; }
}
"""
DIAL = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 60).close(); print('connected')"
BEGIN = """
import socket, sys
dialling = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
dialling.setblocking(False)
print(dialling.connect_ex((sys.argv[1], int(sys.argv[2]))), flush=True)
sys.stdin.read()
"""
LISTEN = """
import socket, sys
ports = [socket.create_server(("::", int(port)), family=socket.AF_INET6, dualstack_ipv6=True) for port in sys.argv[1:]]
print("ready", flush=True)
sys.stdin.read()
"""


ECHO = """
import socketserver, sys, threading
class Session(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line)
socketserver.ThreadingTCPServer.daemon_threads = True
with socketserver.ThreadingTCPServer(("", int(sys.argv[1])), Session) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    server.shutdown()
"""
SESSION = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 60) as session, session.makefile("rw") as lines:
    print("connected", flush=True)
    for line in sys.stdin:
        lines.write(line)
        lines.flush()
        print(lines.readline(), end="", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Machines:
    """The source VM, its peer and a stranger in one network; ``family`` is the peer's address family."""

    vm: Namespace
    peer: Namespace
    stranger: Namespace
    family: str

    def counted(self, chain: str, table: str = "counting") -> int:
        """The number of packets that this chain has counted: attempts to connect."""
        listed = json.loads(self.vm.say("nft", "--json", "list", "chain", "inet", table, chain))["nftables"]
        [packets] = [part["counter"]["packets"] for one in listed for part in one.get("rule", {}).get("expr", [])]
        assert isinstance(packets, int)
        return packets

    def wait_until_counted(self, chain: str, before: int = 0) -> None:
        """Wait until the chain has counted an attempt to connect after the first ``before``."""
        deadline = time.monotonic() + PATIENCE
        while self.counted(chain) <= before:
            assert time.monotonic() < deadline, f"nothing comes to {chain}"
            time.sleep(0.05)


@contextlib.contextmanager
def running(machine: Namespace, program: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A program that prints a line when it is ready, and ends with its standard input."""
    command = machine.command(sys.executable, "-c", program, *map(str, arguments))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline()
        yield process
        process.stdin.close()


@contextlib.contextmanager
def one_network(family: str, *more: str) -> Iterator[tuple[Machines, list[Namespace]]]:
    """The three machines, connected, and ``more`` machines without a cable."""
    with namespaces(("vm", "peer", "stranger", *more)) as (vm, peer, stranger, *others):
        vm.ip("link", "add", "name", "lan", "type", "bridge")
        vm.ip("link", "set", "dev", "lan", "up")
        address(vm, "lan", VM)
        for machine, name, own in ((peer, "peer", PEER), (stranger, "stranger", STRANGER)):
            vm.ip("link", "add", "name", name, "type", "veth", "peer", "name", "lan", "netns", machine.name)
            vm.ip("link", "set", "dev", name, "master", "lan", "up")
            machine.ip("link", "set", "dev", "lan", "up")
            address(machine, "lan", own)
        yield Machines(vm, peer, stranger, family), others


@pytest.fixture(params=FAMILIES)
def machines(request: pytest.FixtureRequest) -> Iterator[Machines]:
    with one_network(request.param) as (made, _):
        yield made


def address(machine: Namespace, device: str, own: dict[str, str]) -> None:
    machine.ip("address", "add", f"{own['ip']}/24", "dev", device)
    machine.ip("address", "add", f"{own['ip6']}/64", "dev", device, "nodad")


def load(machines: Machines, closed: bool, **changes: str) -> None:
    """The VM's rules: the user's own, if any, and the printed ones, with the brokers at the peer's address."""
    settings = parse(REQUIRED | {"DESTINATION_SIDE_TUNNEL_IP": PEER[machines.family]} | changes, Role(0))
    printed = ready("nftables", settings, Side.SOURCE).replace("CIDR_OF_SOURCE_BROKERS", PEER["ip"])
    for text in ([CLOSED] if closed else []) + [printed, COUNTING]:
        machines.vm.say("nft", "-f", "-", given=text)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
def test_the_peer_gets_in(machines: Machines, closed: bool) -> None:
    load(machines, closed)
    with running(machines.vm, LISTEN, TUNNEL):
        dialled = machines.peer.say(sys.executable, "-c", DIAL, VM[machines.family], str(TUNNEL))
    assert dialled == "connected\n"


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_stranger_does_not_get_in_by_either_version_of_ip_whichever_is_the_peers(
    machines: Machines, family: str, closed: bool
) -> None:
    load(machines, closed)
    with running(machines.vm, LISTEN, TUNNEL), running(machines.stranger, BEGIN, VM[family], TUNNEL):
        machines.wait_until_counted("here")
        assert machines.counted("inside") == 0


def test_case_1200_each_vm_of_an_order_gets_in_and_no_stranger(machines: Machines) -> None:
    # A drop behind the accept of the first VM kept the others out.
    absent = {"ip": "10.77.1.9", "ip6": "fd77:1::9"}[machines.family]
    clusters = f"orange@{absent},grape@{VM[machines.family]},us-east.1@{PEER[machines.family]}"
    settings = parse_order(ORDER | {"GLOBAL_CLUSTERS": clusters}, Role(0))
    printed = ready("nftables", settings, "grape").replace("CIDR_OF_GRAPE_BROKERS", PEER["ip"])
    for text in (printed, COUNTING):
        machines.vm.say("nft", "-f", "-", given=text)
    with running(machines.vm, LISTEN, TUNNEL):
        dialled = machines.peer.say(sys.executable, "-c", DIAL, VM[machines.family], str(TUNNEL))
        assert dialled == "connected\n"
        here, inside = machines.counted("here"), machines.counted("inside")
        with running(machines.stranger, BEGIN, VM[machines.family], TUNNEL):
            machines.wait_until_counted("here", here)
            assert machines.counted("inside") == inside


def test_a_vm_that_drops_the_rest_reaches_its_brokers_and_by_neither_version_of_ip_anything_else(
    machines: Machines,
) -> None:
    load(machines, closed=True)
    with running(machines.peer, LISTEN, BROKER, OTHER):
        assert machines.vm.say(sys.executable, "-c", DIAL, PEER["ip"], str(BROKER)) == "connected\n"
        assert machines.counted("outside") == 1
        for family, port in (("ip", OTHER), ("ip6", OTHER), ("ip6", BROKER)):
            begun = machines.counted("begun")
            with running(machines.vm, BEGIN, PEER[family], port):
                assert machines.counted("begun") > begun
                assert machines.counted("outside") == 1


OWN_SSHD = {"TUNNEL_SSH": f"tunnel@{VM['ip']}:{SSH}", "SOURCE_SIDE_TUNNEL_IP": VM["ip"]}


def said(session: subprocess.Popen[str], line: str) -> str:
    """The answer to a line."""
    assert session.stdin
    assert session.stdout
    session.stdin.write(line)
    session.stdin.flush()
    return session.stdout.readline()


@pytest.mark.parametrize(("port", "changes"), [(SSH, OWN_SSHD), (TUNNEL, {})], ids=["own sshd", "tunnel"])
def test_a_session_that_is_open_goes_on_when_the_rules_come(
    machines: Machines, port: int, changes: dict[str, str]
) -> None:
    machines.vm.say("nft", "-f", "-", given=TRACKING)
    with running(machines.vm, ECHO, port), running(machines.stranger, SESSION, VM["ip"], port) as session:
        assert said(session, "before\n") == "before\n"
        load(machines, closed=False, **changes)
        assert said(session, "after\n") == "after\n"


def test_the_operator_still_gets_in_where_the_source_vms_own_sshd_carries_the_tunnel(machines: Machines) -> None:
    load(machines, closed=False, **OWN_SSHD)
    with running(machines.vm, ECHO, SSH):
        for machine in (machines.stranger, machines.peer):
            with running(machine, SESSION, VM["ip"], SSH) as session:
                assert said(session, "new\n") == "new\n"


def test_where_the_vm_drops_the_rest_its_own_sshd_is_open_to_the_destination_vm(machines: Machines) -> None:
    load(machines, closed=True, **OWN_SSHD)
    with running(machines.vm, LISTEN, SSH):
        dialled = machines.peer.say(sys.executable, "-c", DIAL, VM[machines.family], str(SSH))
    assert dialled == "connected\n"
