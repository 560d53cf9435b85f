import ipaddress

import pytest

from appliance.errors import TargetRefused
from appliance.settings.target import Target
from appliance.tunnel.access import check_target, dialable
from tests.support.tunnel import tunnel_settings

BROKER = Target("b0.orange.example", 9093)
STRICT = tunnel_settings(BROKER, target_networks=())


def permitting(*networks):
    return tunnel_settings(BROKER, target_networks=tuple(ipaddress.ip_network(network) for network in networks))


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
        "10.0.0.1:9093",
    ],
)
def test_a_target_off_the_list_is_refused(target):
    with pytest.raises(TargetRefused, match="not on the allow-list"):
        check_target(Target.parse(target), STRICT)


@pytest.mark.parametrize(
    "addresses", [("10.0.0.1",), ("10.0.0.1", "10.0.0.2", "fd12::1"), ("203.0.113.5",), ("2001:db8::1",), ()]
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
    ],
)
@pytest.mark.parametrize("others", [(), ("10.0.0.1",)], ids=["alone", "behind a harmless one"])
def test_an_address_where_no_broker_lives_refuses_them_all(others, address, kind):
    with pytest.raises(TargetRefused, match=kind):
        dialable(BROKER, (*others, address), STRICT)


def test_a_permitted_network_is_dialled():
    assert dialable(BROKER, ("127.0.0.5",), permitting("127.0.0.0/29")) == ("127.0.0.5",)


@pytest.mark.parametrize("address", ["127.0.0.8", "169.254.169.254", "::1"])
def test_a_permitted_network_permits_no_other(address):
    with pytest.raises(TargetRefused):
        dialable(BROKER, (address,), permitting("127.0.0.0/29"))
