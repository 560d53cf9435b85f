import ipaddress

import pytest

from appliance.settings.target import Target
from appliance.settings.variables import BY_NAME
from deploy.render.compose import DESTINATION_VM, SOURCE_VM
from deploy.render.vm import PortMapping, link_address


def test_the_address_of_a_link_is_the_same_for_ever_and_another_at_its_other_end() -> None:
    assert str(link_address("orange-grape", SOURCE_VM)) == "127.183.154.43"
    assert str(link_address("orange-grape", DESTINATION_VM)) == "127.188.12.207"


def test_the_addresses_of_links_are_loopback_and_none_of_an_endpoint() -> None:
    for number in range(100):
        address = link_address(f"orange-{number}", SOURCE_VM)
        assert address in ipaddress.ip_network("127.0.0.0/8")
        assert address not in BY_NAME["TUNNEL_ENDPOINT_NETWORK"].absent


def test_a_hundred_links_have_a_hundred_addresses() -> None:
    assert len({link_address(f"orange-{number}", SOURCE_VM) for number in range(100)}) == 100


@pytest.mark.parametrize(
    ("ours", "theirs", "clash"),
    [
        ("10.0.0.1:15060", "10.0.0.1:15060", True),
        ("10.0.0.1:15060", "10.0.0.1:15061", False),
        ("10.0.0.1:15060", "10.0.0.2:15060", False),
        ("0.0.0.0:15060", "10.0.0.2:15060", True),
        ("10.0.0.1:15060", "[::]:15060", True),
    ],
)
def test_two_listeners_clash_on_one_port_of_one_address_or_of_all(ours: str, theirs: str, clash: bool) -> None:
    assert PortMapping("TUNNEL_PORT", Target.parse(ours), 15060).clashes_with(Target.parse(theirs)) is clash
