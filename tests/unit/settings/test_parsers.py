import ipaddress
from collections.abc import Callable

import pytest

from appliance.settings import parsers, topic_names
from appliance.settings.target import Target
from appliance.settings.values import SaslMechanism
from appliance.settings.variables import BY_NAME


@pytest.mark.parametrize("name", ["orange cluster", "orange/1", "örange", "a" * 101])
def test_a_cluster_id_must_be_fit_for_a_topics_name(name: str) -> None:
    with pytest.raises(ValueError, match="at most 100"):
        parsers.identifier(name)


@pytest.mark.parametrize("suffix", ["co py", "copy/1", "copy,", "cöpy"])
def test_a_suffix_must_be_legal_in_a_topics_name(suffix: str) -> None:
    with pytest.raises(ValueError, match="legal in a topic name"):
        topic_names.topic_suffix(suffix)


def test_a_suffix_leaves_room_for_a_dot_and_one_character() -> None:
    assert topic_names.topic_suffix("c" * 247) == "c" * 247
    with pytest.raises(ValueError, match="at most 247"):
        topic_names.topic_suffix("c" * 248)


@pytest.mark.parametrize(
    ("pattern", "where"), [("orders[", "at character 7"), ("(a", "at character 1"), ("*", "at character 1")]
)
def test_a_regex_that_does_not_compile_is_refused_with_the_place(pattern: str, where: str) -> None:
    with pytest.raises(ValueError, match=where):
        topic_names.regular_expression(pattern)


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 5000 + ")" * 5000])
@pytest.mark.parametrize("parse", [topic_names.regular_expression, topic_names.topics_regex, topic_names.regexes])
def test_case_1031_a_regex_beyond_pythons_limits_is_refused(parse: Callable[[str], str], pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a regular expression with smaller"):
        parse(pattern)


@pytest.mark.parametrize("value", ["orders,payments", "orders, payments", "orders.*,payments,"])
def test_case_875_a_list_of_topics_with_commas_is_refused_with_the_right_form(value: str) -> None:
    # MirrorMaker 2's form: it matched nothing, and the link was "copied".
    with pytest.raises(ValueError, match=r"a list is orders(\.\*)?\|payments"):
        topic_names.topics_regex(value)


@pytest.mark.parametrize("value", ["orders|payments", "a{1,3}", "[a,b]x", "x\\,"])
def test_other_commas_are_the_expressions_own(value: str) -> None:
    assert topic_names.topics_regex(value) == value


def test_a_list_names_its_bad_entry() -> None:
    with pytest.raises(ValueError, match=r"expected a port from 1 to 65535, got 'b1.orange:70000'"):
        parsers.listed(Target.parse)("b0.orange:9092, b1.orange:70000")


@pytest.mark.parametrize("text", ["b0:9092,", ",b0:9092", "b0:9092,,b1:9092"])
def test_a_list_with_an_empty_entry_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="got '' in the list"):
        parsers.listed(Target.parse)(text)


def test_a_list_forgives_spaces_around_its_entries() -> None:
    assert parsers.listed(Target.parse)("b0:1 , B1.:2") == (Target("b0", 1), Target("b1", 2))


def test_networks_are_of_both_families() -> None:
    assert parsers.networks("127.0.0.0/8,fe80::/10") == (
        ipaddress.ip_network("127.0.0.0/8"),
        ipaddress.ip_network("fe80::/10"),
    )


@pytest.mark.parametrize("network", ["10.0.0.1/8", "10.0.0.0/33", "everywhere"])
def test_a_network_that_is_none_is_refused(network: str) -> None:
    with pytest.raises(ValueError, match=f"expected a network such as 10.0.0.0/8, got '{network}'"):
        parsers.networks(network)


@pytest.mark.parametrize("network", ["10.0.0.0/8", "0.0.0.0/0", "126.0.0.0/7", "127.64.0.1/10", "::1/128", "x"])
def test_endpoints_may_only_be_on_loopback(network: str) -> None:
    with pytest.raises(ValueError, match="expected a"):
        parsers.loopback_network(network)


@pytest.mark.parametrize("listen", ["0.0.0.0:53", "192.0.2.1:53", "localhost:53", "127.0.0.1"])
def test_the_dns_shim_may_only_listen_on_loopback(listen: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parsers.loopback_target(listen)


def test_the_dns_shim_may_listen_on_either_familys_loopback() -> None:
    assert parsers.loopback_target("127.0.0.53:53") == Target("127.0.0.53", 53)
    assert parsers.loopback_target("[::1]:53").port == 53


@pytest.mark.parametrize("listen", ["localhost:8080", "127.0.0.1", "127.0.0.1:65536", ":0", "0"])
def test_the_console_listens_on_an_address_with_a_port(listen: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parsers.listening_target(listen)


def test_the_console_may_listen_anywhere_and_on_any_free_port() -> None:
    assert parsers.listening_target("0.0.0.0:8080") == Target("0.0.0.0", 8080)
    assert parsers.listening_target("[::1]:0") == Target("::1", 0)


@pytest.mark.parametrize("address", ["10.0.0.256", "gateway.example", "[::1]", "10.0.0.0/8"])
def test_an_address_is_an_address(address: str) -> None:
    with pytest.raises(ValueError, match="expected an IP address"):
        parsers.address(address)


def test_a_host_is_an_address_or_a_name() -> None:
    assert parsers.host("203.0.113.7") == "203.0.113.7"
    assert parsers.host("Tunnel.Orange.Example.") == "tunnel.orange.example"
    with pytest.raises(ValueError, match="expected an IP address or a host name"):
        parsers.host("203.0.113.7:15060")


@pytest.mark.parametrize("digits", ["433.34.23.45", "1.2.3", "10.0.0.256", "127.1", "0x7f000001"])
def test_digits_that_are_no_address_are_no_host_either(digits: str) -> None:
    with pytest.raises(ValueError, match="expected an IP address or a host name"):
        parsers.host(digits)


def test_a_choice_is_taken_in_either_case_and_a_refusal_lists_all() -> None:
    mechanism = parsers.choice(SaslMechanism)
    assert mechanism("scram-sha-256") is SaslMechanism.SCRAM_SHA_256
    with pytest.raises(ValueError, match="expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        mechanism("GSSAPI")


@pytest.mark.parametrize("text", ["0", "65536", "9092.0", "1e3", "", "٣", "9" * 4000])
def test_a_whole_number_outside_its_range_or_alphabet_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number from 1 to 65535"):
        parsers.whole(1, 65535)(text)


def test_seconds_have_decimals_and_a_range() -> None:
    assert parsers.seconds(0.1, 60)("2.5") == 2.5
    for text in ("0", "61", "-1", "nan", "inf", "1s"):
        with pytest.raises(ValueError, match=r"expected seconds from 0\.1 to 60"):
            parsers.seconds(0.1, 60)(text)


def test_a_replication_factor_is_minus_one_or_positive() -> None:
    parse = BY_NAME["REPLICATION_FACTOR"].parse
    assert [parse(text) for text in ("-1", "3")] == [-1, 3]
    for text in ("0", "-2", "three"):
        with pytest.raises(ValueError, match="expected -1 for the broker's default"):
            parse(text)


def test_yes_and_no_are_taken_in_either_case_and_nothing_else_is() -> None:
    assert [parsers.yes_or_no(text) for text in ("yes", "YES", "no", "No", "")] == [True, True, False, False, False]
    with pytest.raises(ValueError, match="expected yes or no"):
        parsers.yes_or_no("true")
