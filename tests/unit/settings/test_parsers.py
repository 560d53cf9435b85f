import ipaddress
import re
from collections.abc import Callable

import pytest

from appliance.settings import parsers, topics
from appliance.settings.target import Target
from appliance.settings.values import SaslMechanism
from appliance.settings.variables import BY_NAME

IP = "expected an IP address"
BROKERS = parsers.listed(Target.parse)
REPLICATION_FACTOR = BY_NAME["REPLICATION_FACTOR"].parse

REFUSED: list[tuple[Callable[[str], object], str, list[str]]] = [
    (parsers.identifier, "at most 100 of", ["orange cluster", "orange/1", "örange", "a" * 101]),
    (topics.topic_suffix, "legal in a topic name", ["co py", "copy/1", "copy,", "cöpy"]),
    (topics.topic_suffix, "at most 247", ["c" * 248]),
    (topics.regular_expression, "at character 7", ["orders["]),
    (topics.regular_expression, "at character 1", ["(a", "*"]),
    (BROKERS, "expected a port from 1 to 65535, got 'b1.orange:70000'", ["b0.orange:9092, b1.orange:70000"]),
    (BROKERS, "got '' in the list", ["b0:9092,", ",b0:9092", "b0:9092,,b1:9092"]),
    (parsers.networks, "expected a network such as 10.0.0.0/8, got '", ["10.0.0.1/8", "10.0.0.0/33", "everywhere"]),
    (
        parsers.loopback_network,
        "expected a",
        ["10.0.0.0/8", "0.0.0.0/0", "126.0.0.0/7", "127.64.0.1/10", "::1/128", "x"],
    ),
    (parsers.loopback_target, "expected", ["0.0.0.0:53", "192.0.2.1:53", "localhost:53", "127.0.0.1"]),
    (parsers.listening_target, "expected", ["localhost:8080", "127.0.0.1", "127.0.0.1:65536", ":0", "0"]),
    (parsers.address, IP, ["10.0.0.256", "gateway.example", "[::1]", "10.0.0.0/8"]),
    (parsers.host, f"{IP} or a host name", ["203.0.113.7:15060"]),
    (parsers.host, f"{IP} or a host name", ["433.34.23.45", "1.2.3", "10.0.0.256", "127.1", "0x7f000001"]),
    (parsers.choice(SaslMechanism), "expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512", ["GSSAPI"]),
    (parsers.whole(1, 65535), "a whole number from 1 to 65535", ["0", "65536", "9092.0", "1e3", "", "٣", "9" * 4000]),
    (parsers.seconds(0.1, 60), "expected seconds from 0.1 to 60", ["0", "61", "-1", "nan", "inf", "1s"]),
    (REPLICATION_FACTOR, "expected -1 for the broker's default", ["0", "-2", "three"]),
    (parsers.yes_or_no, "expected yes or no", ["true"]),
    (
        parsers.image,
        "expected an image, such as registry.example:5000/name:1.0 or name@sha256:",
        [
            *(
                "a b",
                "Name",
                "https://registry.example/name",
                "name:",
                "name:-1",
                "name:1:2",
                "name:٣",
                "/name",
                "name/",
            ),
            *("name@sha256:a1", f"name@sha1:{'a' * 64}", f"name@sha256:{'A' * 64}", "$NAME", "a//b", "name\n"),
        ],
    ),
]

ACCEPTED: list[tuple[Callable[[str], object], str, object]] = [
    (topics.topic_suffix, "c" * 247, "c" * 247),
    (BROKERS, "b0:1 , B1.:2", (Target("b0", 1), Target("b1", 2))),
    (parsers.networks, "127.0.0.0/8,fe80::/10", tuple(map(ipaddress.ip_network, ("127.0.0.0/8", "fe80::/10")))),
    (parsers.loopback_target, "127.0.0.53:53", Target("127.0.0.53", 53)),
    (parsers.loopback_target, "[::1]:53", Target("::1", 53)),
    (parsers.listening_target, "0.0.0.0:8080", Target("0.0.0.0", 8080)),
    (parsers.listening_target, "[::1]:0", Target("::1", 0)),
    (parsers.host, "203.0.113.7", "203.0.113.7"),
    (parsers.host, "Tunnel.Orange.Example.", "tunnel.orange.example"),
    (parsers.choice(SaslMechanism), "scram-sha-256", SaslMechanism.SCRAM_SHA_256),
    (parsers.seconds(0.1, 60), "2.5", 2.5),
    (REPLICATION_FACTOR, "-1", -1),
    (REPLICATION_FACTOR, "3", 3),
    *((parsers.yes_or_no, text, text.lower() == "yes") for text in ("yes", "YES", "no", "No", "")),
]


@pytest.mark.parametrize(("parse", "expected", "texts"), REFUSED, ids=lambda one: one if isinstance(one, str) else "")
def test_a_text_that_is_no_value_is_refused_with_the_expected_form(
    parse: Callable[[str], object], expected: str, texts: list[str]
) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=re.escape(expected)):
            parse(text)


@pytest.mark.parametrize(("parse", "text", "value"), ACCEPTED, ids=lambda one: one[:30] if isinstance(one, str) else "")
def test_a_text_becomes_its_value(parse: Callable[[str], object], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 5000 + ")" * 5000])
@pytest.mark.parametrize("parse", [topics.regular_expression, topics.topics_regex, topics.regexes])
def test_case_1031_a_regex_beyond_pythons_limits_is_refused(parse: Callable[[str], str], pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a regular expression with smaller"):
        parse(pattern)


@pytest.mark.parametrize("value", ["orders,payments", "orders, payments", "orders.*,payments,"])
def test_case_875_a_list_of_topics_with_commas_is_refused_with_the_right_form(value: str) -> None:
    # MirrorMaker 2's form: it matched nothing, and the link was "copied".
    with pytest.raises(ValueError, match=r"a list is orders(\.\*)?\|payments"):
        topics.topics_regex(value)


@pytest.mark.parametrize("value", ["orders|payments", "a{1,3}", "[a,b]x", "x\\,"])
def test_other_commas_are_the_expressions_own(value: str) -> None:
    assert topics.topics_regex(value) == value
