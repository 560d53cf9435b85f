import asyncio
import ipaddress
import logging

import pytest

from appliance.dns.binding import AddressBook
from appliance.errors import NameUnresolved, SettingsError
from appliance.gateway import endpoints as endpoints_module
from appliance.gateway.endpoints import Endpoints
from appliance.settings.target import AllowedTargets, Target, TargetPattern

EXACT = (Target("b0.orange.example", 9093), Target("b0.orange.example", 9094), Target("b1.orange.example", 9093))
ALLOWED = AllowedTargets(EXACT, (TargetPattern("pattern.example", 9092),))


class Client:
    """A substitute for the tunnel's client that notes the endpoints to open; it raises ``fault``."""

    def __init__(self):
        self.opened = []
        self.fault = None

    async def open_endpoint(self, target, address, port):
        await asyncio.sleep(0)
        if self.fault:
            raise self.fault
        self.opened.append((str(target), address, port))
        return port


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def book():
    return AddressBook(ipaddress.IPv4Network("127.64.0.0/10"))


@pytest.fixture
def endpoints(book, client):
    return Endpoints(ALLOWED, book, client)


async def test_each_name_has_one_address_with_all_its_ports(endpoints, book, client):
    await endpoints.open_exact()
    b0, b1 = (str(book.address_of(f"{name}.orange.example")) for name in ("b0", "b1"))
    assert sorted(client.opened) == [
        ("b0.orange.example:9093", b0, 9093),
        ("b0.orange.example:9094", b0, 9094),
        ("b1.orange.example:9093", b1, 9093),
    ]


async def test_the_open_endpoints_are_listed_in_order_with_their_addresses(endpoints, book):
    assert endpoints.addresses == {}
    await endpoints.lookup("b7.pattern.example")
    await endpoints.open(EXACT[2])
    expected = [(EXACT[2], str(book.address_of("b1.orange.example")))]
    expected.append((Target("b7.pattern.example", 9092), str(book.address_of("b7.pattern.example"))))
    assert list(endpoints.addresses.items()) == expected


async def test_a_name_of_the_pattern_is_open_before_it_is_answered(endpoints, client):
    address = await endpoints.lookup("B7.Pattern.Example.")
    assert client.opened == [("b7.pattern.example:9092", str(address), 9092)]


async def test_a_name_asked_for_many_times_at_once_is_opened_once(endpoints, client):
    addresses = await asyncio.gather(*(endpoints.lookup("b7.pattern.example") for _ in range(10)))
    assert len(set(addresses)) == len(client.opened) == 1


@pytest.mark.parametrize("host", ["orange.example", "b2.orange.example", "pattern.example", "localhost"])
async def test_a_name_that_is_not_ours_has_no_address(endpoints, client, host):
    assert await endpoints.lookup(host) is None
    assert client.opened == []


async def test_an_endpoint_that_cannot_be_opened_is_logged_and_tried_again(endpoints, client, caplog):
    client.fault = SettingsError(["TUNNEL_ENDPOINT_NETWORK: cannot listen"])
    address = await endpoints.lookup("b7.pattern.example")
    assert caplog.records[0].fields == {"host": "b7.pattern.example", "cause": "TUNNEL_ENDPOINT_NETWORK: cannot listen"}
    client.fault = None
    assert await endpoints.lookup("b7.pattern.example") == address
    assert client.opened == [("b7.pattern.example:9092", str(address), 9092)]


async def test_an_exact_endpoint_that_cannot_be_opened_stops_the_start(endpoints, client):
    client.fault = SettingsError(["TUNNEL_ENDPOINT_NETWORK: cannot listen"])
    with pytest.raises(SettingsError):
        await endpoints.open_exact()


async def test_invented_names_get_only_so_many_endpoints(endpoints, client, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(endpoints_module, "ASKED_MAX", 3)
    addresses = [await endpoints.lookup(f"b{index}.pattern.example") for index in range(3)]
    for index in (3, 4):
        with pytest.raises(NameUnresolved, match="SOURCE_BROKER_PATTERN"):
            await endpoints.lookup(f"b{index}.pattern.example")
    assert await endpoints.lookup("b0.pattern.example") == addresses[0]
    assert len(client.opened) == 3
    (told,) = caplog.messages
    assert "SOURCE_BROKER_PATTERN" in told


async def test_of_a_wide_range_only_the_port_of_a_listed_broker_is_opened(book, client):
    allowed = AllowedTargets((), (TargetPattern("wide.example", 9092, 17), TargetPattern("narrow.example", 9092, 3)))
    endpoints = Endpoints(allowed, book, client)
    address = await endpoints.lookup("b0.wide.example")
    assert client.opened == []
    await endpoints.open(Target("b0.wide.example", 9100))
    await endpoints.open(Target("b0.wide.example", 9100))
    assert client.opened == [("b0.wide.example:9100", str(address), 9100)]
    await endpoints.lookup("b0.narrow.example")
    assert [port for *_, port in client.opened] == [9100, 9092, 9093, 9094]
    assert endpoints.count == 4


async def test_a_listed_broker_gets_its_endpoint_however_many_invented_names_there_are(endpoints, monkeypatch):
    monkeypatch.setattr(endpoints_module, "ASKED_MAX", 1)
    await endpoints.lookup("invented.pattern.example")
    with pytest.raises(NameUnresolved):
        await endpoints.lookup("b0.pattern.example")
    await endpoints.open(Target("b0.pattern.example", 9092))
    assert await endpoints.lookup("b0.pattern.example") is not None
