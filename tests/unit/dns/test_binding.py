import pytest

from appliance.dns.binding import check
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
