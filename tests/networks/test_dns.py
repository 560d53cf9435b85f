"""The shim as the resolver of a VM: dig, dnspython, glibc and Java query it, and it forwards to the VPC's own DNS."""

import ipaddress
import json
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.networks.clusters import BROKERS, GRAPE_DNS
from tests.networks.dig import Reply, dig
from tests.networks.programs.resolver import LIE
from tests.networks.topology import DESTINATION_SIDE_TUNNEL_IP, DESTINATION_VM_IN_VPC, SHIM
from tests.networks.vpcs import Vpcs
from tests.support.namespace import Namespace

pytestmark = pytest.mark.usefixtures("tunnel")

MAPPED = "b0.orange.example"
EDNS = 1232


@pytest.fixture
def vm(vpcs: Vpcs) -> Namespace:
    """The destination VM, with the shim as its resolver."""
    return vpcs.machines.destination_vm


def only_address(vm: Namespace, name: str) -> str:
    (address,) = dig(vm, name).addresses
    return address


@pytest.mark.parametrize("protocol", ["+notcp", "+tcp"])
def test_each_broker_has_a_loopback_address_of_its_own(vm: Namespace, protocol: str) -> None:
    replies = [dig(vm, protocol, name) for name in ("b0.orange.example", "b1.orange.example")]
    assert {reply.status for reply in replies} == {"NOERROR"}
    addresses = {ipaddress.ip_address(address) for reply in replies for address in reply.addresses}
    assert len(addresses) == 2
    assert all(address in ipaddress.ip_network("127.64.0.0/10") for address in addresses)


@pytest.mark.parametrize("protocol", ["+notcp", "+tcp"])
@pytest.mark.parametrize("kind", ["AAAA", "HTTPS", "SVCB", "MX", "TXT", "NS", "SOA", "PTR", "ANY", "TYPE65280"])
def test_any_other_type_of_a_mapped_name_is_noerror_without_answer(vm: Namespace, kind: str, protocol: str) -> None:
    reply = dig(vm, protocol, MAPPED, kind)
    assert (reply.status, reply.answers) == ("NOERROR", frozenset())


@pytest.mark.parametrize("protocol", ["+notcp", "+tcp"])
@pytest.mark.parametrize("record_class", ["CH", "HS", "CLASS65280"])
def test_any_other_class_is_refused(vm: Namespace, record_class: str, protocol: str) -> None:
    reply = dig(vm, protocol, "-c", record_class, "-q", MAPPED)
    assert (reply.status, reply.answers) == ("REFUSED", frozenset())


@pytest.mark.parametrize("name", ["b0.OrAnGe.eXaMpLe", "B0.ORANGE.EXAMPLE", "b0.GrApE.example"])
def test_the_name_comes_back_in_the_askers_case(vm: Namespace, name: str) -> None:
    reply = dig(vm, name)
    assert reply.question == f"{name}. IN A"
    assert [answer.split()[0] for answer in reply.answers] == [f"{name}."]
    assert reply.addresses == dig(vm, name.lower()).addresses


@pytest.mark.parametrize("size", [0, 512, 1232, 4096])
def test_edns_is_answered_with_edns_and_its_absence_with_none(vm: Namespace, size: int) -> None:
    reply = dig(vm, f"+bufsize={size}" if size else "+noedns", MAPPED)
    assert reply.edns == (EDNS if size else None)
    assert len(reply.addresses) == 1


@pytest.mark.parametrize(
    ("size", "whole"), [("+noedns", False), ("+bufsize=512", False), ("+bufsize=1232", True), ("+bufsize=4096", True)]
)
def test_an_answer_larger_than_the_client_takes_is_truncated_and_whole_by_tcp(
    vm: Namespace, size: str, whole: bool
) -> None:
    datagram = dig(vm, size, "+notcp", "+ignore", "big.grape.example")
    assert ("tc" in datagram.flags, len(datagram.addresses)) == (not whole, 60 if whole else 0)
    assert len(dig(vm, size, "big.grape.example").addresses) == 60


def test_an_answer_that_fits_no_datagram_comes_by_tcp(vm: Namespace) -> None:
    asked_there = dig(vm, f"@{GRAPE_DNS.host}", "huge.grape.example")
    assert "tc" in dig(vm, "+bufsize=4096", "+ignore", "huge.grape.example").flags
    assert dig(vm, "huge.grape.example").answers == asked_there.answers
    assert len(asked_there.answers) == 400


def test_dnspython_understands_what_dig_does(vm: Namespace) -> None:
    questions = [
        (name, kind, record_class, protocol, size)
        for name in (MAPPED, "B1.oRANGE.example", "b0.grape.example", "nobody.grape.example")
        for kind in ("A", "AAAA", "HTTPS", "MX", "ANY", "TYPE65280")
        for record_class in ("IN", "CH")
        for protocol, size in (("udp", 0), ("udp", 512), ("udp", 4096), ("tcp", 0), ("tcp", 1232))
    ] + [("big.grape.example", "A", "IN", *how) for how in (("udp", 4096), ("tcp", 0))]
    program = (sys.executable, "-m", "tests.networks.programs.dnspython", SHIM)
    understood = json.loads(vm.say(*program, given=json.dumps(questions)))
    with ThreadPoolExecutor(8) as pool:
        by_dig = list(pool.map(lambda question: dig(vm, *words(*question)), questions))
    for question, reply, (status, flags, asked, answers, edns) in zip(questions, by_dig, understood, strict=True):
        assert reply == Reply(status, frozenset(flags), asked, frozenset(answers), edns), question


def words(name: str, kind: str, record_class: str, protocol: str, size: int) -> tuple[str, ...]:
    """dig's arguments for a query with the header flags that dnspython sets."""
    edns = f"+bufsize={size}" if size else "+noedns"
    return ("-q", name, "-t", kind, "-c", record_class, "+tcp" if protocol == "tcp" else "+notcp", edns, "+noadflag")


def test_glibc_finds_a_mapped_name_a_forwarded_one_and_one_that_fits_no_datagram(vm: Namespace) -> None:
    asked = (MAPPED, "b0.grape.example", "huge.grape.example")
    program = (
        "import json, socket, sys;"
        "print(json.dumps([sorted({a[4][0] for a in socket.getaddrinfo(n, 9092)}) for n in sys.argv[1:]]))"
    )
    mapped, forwarded, huge = json.loads(vm.say(sys.executable, "-c", program, *asked))
    assert mapped == [only_address(vm, MAPPED)]
    assert forwarded == [BROKERS["grape"]["b0.grape.example"]]
    assert len(huge) == 400
    assert set(vm.say("getent", "ahosts", MAPPED).split()) >= {mapped[0], MAPPED}


def test_glibc_is_told_of_a_name_that_has_no_address(vm: Namespace) -> None:
    assert vm.run("getent", "ahosts", "nobody.grape.example").returncode == 2


def test_java_finds_the_same_addresses(vm: Namespace) -> None:
    names = (MAPPED, "b1.orange.example", "b0.grape.example", "nobody.grape.example")
    found = json.loads(vm.say(sys.executable, "-m", "tests.networks.programs.java_names", *names))
    assert found == [dig(vm, name).addresses for name in names]


def test_a_slow_upstream_is_waited_for_and_delays_no_mapped_name(vm: Namespace) -> None:
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(dig, vm, "slow.grape.example")
        while not slow.done():
            assert dig(vm, "+time=1", MAPPED).status == "NOERROR"
    assert slow.result().addresses == ["10.2.0.20"]


def test_a_lying_upstream_is_not_believed(vm: Namespace) -> None:
    assert dig(vm, "lying.grape.example").addresses == ["10.2.0.21"]


def test_an_upstream_that_only_lies_or_is_silent_is_a_servfail_before_a_client_gives_up(vm: Namespace) -> None:
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda name: dig(vm, "+time=5", name), ("liar.grape.example", "silent.grape.example")))
    assert [(reply.status, reply.answers) for reply in replies] == [("SERVFAIL", frozenset())] * 2
    assert LIE not in str(replies)


async def test_a_dead_upstream_is_a_servfail_at_once_and_mapped_names_stay(vpcs: Vpcs, vm: Namespace) -> None:
    own = {"DNS_LISTEN": "127.0.0.2:53", "TUNNEL_ENDPOINT_NETWORK": "127.200.0.0/16"}
    async with vpcs.appliance(vm, "destination", DNS_UPSTREAM=f"{GRAPE_DNS.host}:5353", **own):
        for protocol in ("+notcp", "+tcp"):
            assert dig(vm, "@127.0.0.2", "+time=1", protocol, "b0.grape.example").status == "SERVFAIL"
        assert len(dig(vm, "@127.0.0.2", MAPPED).addresses) == 1


async def test_without_an_upstream_a_name_that_is_not_ours_is_refused(vpcs: Vpcs, vm: Namespace) -> None:
    own = {"DNS_LISTEN": "127.0.0.2:53", "TUNNEL_ENDPOINT_NETWORK": "127.200.0.0/16"}
    async with vpcs.appliance(vm, "destination", DNS_UPSTREAM="", **own):
        assert dig(vm, "@127.0.0.2", "b0.grape.example").status == "REFUSED"


@pytest.mark.parametrize("protocol", ["+notcp", "+tcp"])
def test_the_shim_answers_on_loopback_alone(vpcs: Vpcs, vm: Namespace, protocol: str) -> None:
    machines = vpcs.machines
    for machine, address in (
        (vm, DESTINATION_SIDE_TUNNEL_IP),
        (vm, DESTINATION_VM_IN_VPC),
        (machines.stranger, DESTINATION_SIDE_TUNNEL_IP),
        (machines.destination_vpc, DESTINATION_VM_IN_VPC),
    ):
        with pytest.raises(RuntimeError, match=r"connection refused|no servers could be reached"):
            dig(machine, f"@{address}", "+time=1", protocol, MAPPED)
