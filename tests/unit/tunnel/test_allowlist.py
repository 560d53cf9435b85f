import ast
import ipaddress
from pathlib import Path

import pytest

import appliance
from appliance.errors import BrokerNotAllowed, NameUnresolved, TargetRefused
from appliance.settings.target import Target
from appliance.tunnel.model.allowlist import check_endpoint, check_target, dialable
from tests.support.tunnel import tunnel_settings

BROKER = Target("b0.orange.example", 9093)
STRICT = tunnel_settings(BROKER, broker_networks=())


def within(*networks):
    return tunnel_settings(BROKER, broker_networks=tuple(ipaddress.ip_network(network) for network in networks))


@pytest.mark.parametrize("target", ["b0.orange.example:9093", "B0.Orange.Example.:9093", "b7.pattern.example:9092"])
def test_a_target_on_the_list_passes(target):
    check_target(Target.parse(target), STRICT)


@pytest.mark.parametrize(
    "target",
    [
        "b0.orange.example:22",
        "b1.orange.example:9093",
        "b0.orange.example.evil.example:9093",
        "pattern.example:9092",
        "evilpattern.example:9092",
        "localhost:9093",
        "10.0.0.1:9093",
    ],
)
def test_a_target_off_the_list_is_refused(target):
    with pytest.raises(TargetRefused, match="not on the allow-list"):
        check_target(Target.parse(target), STRICT)


@pytest.mark.parametrize(
    "addresses",
    [
        ("10.0.0.1",),
        ("10.0.0.1", "10.0.0.2", "fd12::1"),
        ("203.0.113.5",),
        ("2001:db8::1",),
        ("64:ff9b::10.0.0.1", "64:ff9b:1::10.0.0.1"),
        (),
    ],
)
def test_addresses_where_brokers_live_are_dialled(addresses):
    assert dialable(BROKER, addresses, STRICT) == addresses


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.64.0.1", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("169.254.7.7", "link-local"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("::ffff:0.0.0.0", "unspecified"),
        ("169.254.169.254", "cloud metadata"),
        ("::ffff:169.254.169.254", "cloud metadata"),
        ("fd00:ec2::254", "cloud metadata"),
        ("fd00:ec2::23", "cloud metadata"),
        ("168.63.129.16", "cloud metadata"),
        ("fd00:ec2:0:1::7", "cloud metadata"),
        ("fd20:ce::254", "cloud metadata"),
        ("255.255.255.255", "broadcast"),
        ("64:ff9b::169.254.169.254", "cloud metadata"),
        ("64:ff9b::127.0.0.1", "loopback"),
        ("::ffff:0:169.254.169.254", "cloud metadata"),
        ("64:ff9b:1::169.254.169.254", "cloud metadata"),
        ("64:ff9b:1:a9fe:a9:fe00::", "cloud metadata"),
        ("64:ff9b:1:ffa9:fe:a9fe::", "cloud metadata"),
        ("64:ff9b:1:ffff:a9:fea9:fe00:0", "cloud metadata"),
        ("64:ff9b:1:7f00:0:100::", "loopback"),
        ("2002:a9fe:a9fe::1", "deprecated way"),
        ("2002:a00:1::1", "deprecated way"),
        ("2001:0:4136:e378:8000:63bf:5601:5601", "deprecated way"),
        ("192.0.0.192", "reserved"),
        ("192.88.99.1", "reserved"),
        ("fec0::1", "reserved"),
        ("::169.254.169.254", "deprecated way"),
        ("::10.0.0.1", "deprecated way"),
        ("2001:db8::5efe:169.254.169.254", "deprecated way"),
        ("2001:db8::200:5efe:10.0.0.1", "deprecated way"),
    ],
)
@pytest.mark.parametrize("others", [(), ("10.0.0.1",)], ids=["alone", "behind a harmless one"])
def test_an_address_where_no_broker_lives_refuses_them_all(others, address, kind):
    with pytest.raises(TargetRefused, match=kind):
        dialable(BROKER, (*others, address), STRICT)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.5", "10.0.0.0/24"),
        ("fd12::5", "fd12::/16"),
        ("::ffff:10.0.0.5", "10.0.0.0/24"),
        ("64:ff9b::10.0.0.5", "10.0.0.0/24"),
        ("64:ff9b:1::10.0.0.5", "64:ff9b:1::/96"),
        ("127.0.0.5", "127.0.0.0/29"),
        ("169.254.7.7", "169.254.7.0/24"),
    ],
)
def test_an_address_in_the_networks_of_the_brokers_is_dialled(address, network):
    assert dialable(BROKER, (address,), within("192.0.2.0/24", network)) == (address,)


@pytest.mark.parametrize("address", ["10.0.1.5", "fd12::5", "64:ff9b::10.0.1.5", "64:ff9b:1:a00:5:a00:a00:5"])
def test_an_address_outside_of_the_networks_of_the_brokers_is_refused(address):
    with pytest.raises(TargetRefused, match="outside of TUNNEL_BROKER_NETWORKS"):
        dialable(BROKER, ("10.0.0.5", address), within("10.0.0.0/24", "192.0.2.0/24"))


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("127.0.0.1", "0.0.0.0/0"),
        ("127.0.0.1", "126.0.0.0/7"),
        ("169.254.169.254", "169.254.0.0/16"),
        ("fd00:ec2::23", "fd00::/8"),
        ("::1", "::/0"),
        ("64:ff9b::127.0.0.1", "64:ff9b::/96"),
        ("64:ff9b:1::169.254.169.254", "64:ff9b:1::/96"),
        ("2002:a00:1::1", "2000::/3"),
    ],
)
def test_a_network_around_a_place_where_no_broker_lives_does_not_permit_it(address, network):
    with pytest.raises(TargetRefused, match="resolves to"):
        dialable(BROKER, (address,), within(network))


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (Target("10.0.0.7", 9093), "10.0.0.7:9093: it is advertised by an address"),
        (Target("::1", 9093), "[::1]:9093: it is advertised by an address"),
        (Target("10.1", 9093), "10.1:9093: its name is not allowed"),
        (Target("neighbour.home.example", 9093), "neighbour.home.example:9093: its name is not allowed"),
        (Target("b0.orange.example", 70_000), "b0.orange.example:70000: its name is allowed on other ports only: 9093"),
    ],
)
def test_a_broker_that_the_settings_do_not_allow_is_not_dialled_whatever_its_address(target, reason):
    with pytest.raises(BrokerNotAllowed) as refused:
        check_endpoint(target, ("127.64.0.1",), STRICT)
    assert str(refused.value).startswith(reason)
    assert str(refused.value).endswith(": SOURCE_BROKER_SERVERS, SOURCE_BROKER_PATTERN")


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "::1", "::ffff:127.64.0.1"])
def test_an_allowed_broker_is_dialled_at_its_endpoint_alone(address):
    check_endpoint(BROKER, (), STRICT)
    check_endpoint(BROKER, ("127.64.0.1",), STRICT)
    with pytest.raises(NameUnresolved, match=r"outside of TUNNEL_ENDPOINT_NETWORK=127\.64\.0\.0/10"):
        check_endpoint(BROKER, ("127.64.0.1", address), STRICT)


def test_every_client_of_a_source_beyond_a_tunnel_checks_what_it_dials():
    """The destination, and a source without a tunnel, are dialled as their metadata has them."""
    files = Path(appliance.__file__).parent.rglob("*.py")
    calls = [node for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    made = [call for call in calls if getattr(call.func, "id", "") == "KafkaCluster"]
    checked = [call for call in made if any(keyword.arg == "accept" for keyword in call.keywords)]
    assert len(checked) == 3
    assert sorted(ast.unparse(call) for call in made if call not in checked) == [
        "KafkaCluster(settings.destination, system_addresses, settings.replicator)",
        "KafkaCluster(settings.source, system_addresses, settings.replicator)",
    ]
