"""The parts of ``bin/demo --global`` that need no cluster: the settings of its VMs, and its comparison."""

import json
from collections.abc import Callable
from ipaddress import ip_address

import pytest

from appliance.settings.env_file import read_order
from appliance.settings.role import EVERY_ROLE
from appliance.settings.target import Target
from demo.order_report import Change, OrderReport
from demo.order_setenv import ADDRESSES, ORDERED, TOPIC, OrderAddresses, order_setenv
from demo.order_verification import OrderCheck, _compare
from testbed.comparison import Track
from testbed.reading import Reading
from tests.support.settings import SECRET

Orders = dict[str, list[int]]
WRITTEN = {"orange": [1, 2, 3], "grape": [11, 12], "lemon": [21]}
ORDER = [1, 11, 2, 21, 3, 12]


def track(fingerprints: list[int]) -> Track:
    made = Track()
    for offset, fingerprint in enumerate(fingerprints):
        made.append(offset, fingerprint)
    return made


def checked(orders: Orders) -> OrderCheck:
    check = OrderCheck()
    readings = {
        name: Reading({(TOPIC.name, 0): track(WRITTEN[name]), (ORDERED, 0): track(order)})
        for name, order in orders.items()
    }
    _compare(readings, 0, check)
    return check


@pytest.mark.parametrize("own", ADDRESSES)
def test_the_settings_of_each_vm_are_right_and_have_addresses_of_their_own(own, tmp_path):
    brokers = {name: Target(f"b0.{name}.vpc.example", 9000 + at) for at, name in enumerate(ADDRESSES)}
    addresses = OrderAddresses(*(Target("127.0.0.1", port) for port in (5301, 5302, 8180)))
    env_file = tmp_path / "setenv.sh"
    env_file.touch(mode=0o600)
    env_file.write_text(order_setenv(own, brokers, Target("localhost", 9100), 15061, SECRET, addresses))
    settings = read_order(env_file, EVERY_ROLE, {})
    assert (settings.cluster, settings.home) == (own, "orange")
    assert str(settings.own.settings.bootstrap[0]) == "localhost:9100"
    assert len({link.tunnel.endpoint_network for link in settings.links}) == 2
    assert all(ip_address("127.0.0.1") not in link.tunnel.endpoint_network for link in settings.links)


def test_equal_orders_of_all_that_was_written_are_clean():
    check = checked(dict.fromkeys(WRITTEN, ORDER))
    assert (check.clean, check.shown) == (True, dict.fromkeys(WRITTEN, 6))
    report = OrderReport({"orange": 3, "grape": 2, "lemon": 1}, check, [Change("move", "it moves", 1.23)], 9.0)
    assert report.clean
    assert json.loads(report.as_json())["move_seconds"] == 1.2
    assert not OrderReport({"orange": 4, "grape": 2, "lemon": 1}, check, [], 9.0).clean


@pytest.mark.parametrize(
    ("wrong", "count"),
    [
        ([1, 11, 2, 21, 3], lambda found: found.lost),
        ([1, 11, 2, 21, 3, 12, 12], lambda found: found.duplicated),
        ([11, 1, 2, 21, 3, 12], lambda found: found.reordered),
        ([1, 11, 2, 21, 3, 99], lambda found: found.altered),
    ],
)
def test_an_order_that_is_wrong_in_one_cluster_is_not_clean(wrong: list[int], count: Callable[..., int]):
    check = checked(dict.fromkeys(WRITTEN, ORDER) | {"lemon": wrong})
    assert count(check.differences)
    assert not check.clean
    assert not check.chains_equal


@pytest.mark.parametrize("wrong", [ORDER[:-1], [*ORDER, 12], [2, 11, 1, 21, 3, 12], [*ORDER, 99]])
def test_an_order_that_is_equally_wrong_everywhere_is_not_clean(wrong: list[int]):
    check = checked(dict.fromkeys(WRITTEN, wrong))
    assert check.chains_equal
    assert not check.clean
