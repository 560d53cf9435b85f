import ipaddress

import pytest

from appliance.dns.binding import AddressBook, check
from appliance.errors import SettingsError
from appliance.settings.target import Target
from appliance.settings.values import DnsSettings

LOOPBACK = Target("127.0.0.1", 53)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.64.0.1", "::1", "[::1]"])
def test_every_loopback_address_may_be_listened_on(host):
    check(DnsSettings(Target(host, 53), None))


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "10.0.0.1", "192.168.1.1", "8.8.8.8", "::", "fe80::1", "localhost", "b0.orange"]
)
def test_anything_but_loopback_is_refused(host):
    with pytest.raises(SettingsError, match=r"DNS_LISTEN: .* is not a loopback address"):
        check(DnsSettings(Target(host, 53), None))


@pytest.mark.parametrize("upstream", ["127.0.0.1:53", "0.0.0.0:53", "[::ffff:127.0.0.1]:53"])
def test_the_shim_never_asks_itself(upstream):
    with pytest.raises(SettingsError, match=r"DNS_UPSTREAM: .* is the shim itself"):
        check(DnsSettings(LOOPBACK, Target.parse(upstream)))


@pytest.mark.parametrize("upstream", ["127.0.0.53:53", "127.0.0.1:5353", "10.0.0.2:53", "[::1]:53"])
def test_another_resolver_even_on_loopback_may_be_asked(upstream):
    check(DnsSettings(LOOPBACK, Target.parse(upstream)))


def test_an_upstream_that_is_a_name_is_refused():
    with pytest.raises(SettingsError, match=r"DNS_UPSTREAM: dns\.orange:53 .* IP address"):
        check(DnsSettings(LOOPBACK, Target("dns.orange", 53)))


def test_all_faults_are_reported_at_once():
    with pytest.raises(SettingsError) as refusal:
        check(DnsSettings(Target("0.0.0.0", 53), Target("dns.orange", 53)))
    assert len(refusal.value.faults) == 2


DEFAULT = ipaddress.IPv4Network("127.64.0.0/10")


def test_a_name_has_the_same_address_in_another_process_whatever_was_asked_before():
    book = AddressBook(DEFAULT)
    for index in range(100):
        book.address_of(f"b{index}.grape")
    assert book.address_of("b0.orange") == AddressBook(DEFAULT).address_of("b0.orange")


def test_the_address_is_pinned_across_releases():
    assert str(AddressBook(DEFAULT).address_of("b0.orange")) == "127.102.41.126"


def test_a_name_is_one_name_however_it_is_spelled():
    book = AddressBook(DEFAULT)
    assert book.address_of("B0.Orange.") == book.address_of("b0.orange")


def test_names_never_share_an_address_even_when_they_fill_the_network():
    network = ipaddress.IPv4Network("127.64.0.0/24")
    book = AddressBook(network)
    given = {book.address_of(f"b{index}.orange") for index in range(254)}
    assert given == set(network.hosts())


def test_colliding_names_get_the_same_addresses_every_time():
    network = ipaddress.IPv4Network("127.64.0.0/29")
    names = ["b0.orange", "b1.orange", "b2.orange", "b3.orange"]
    books = AddressBook(network), AddressBook(network)
    first, second = ([book.address_of(name) for name in names] for book in books)
    assert first == second
    assert len(set(first)) == len(names)


@pytest.mark.parametrize(("network", "places"), [("127.64.0.0/30", 2), ("127.64.0.0/31", 0), ("127.64.0.0/32", 0)])
def test_a_full_network_is_named_in_the_refusal(network, places):
    book = AddressBook(ipaddress.IPv4Network(network))
    for index in range(places):
        book.address_of(f"b{index}.orange")
    with pytest.raises(SettingsError, match=f"b9.orange.*{network}"):
        book.address_of("b9.orange")
