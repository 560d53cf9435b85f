"""Parsers of single variables: pure functions that raise ValueError with the expected form.

Law: for a variable without a default, the empty text gives the empty value of its type. That is what a role sees of
a variable that it does not need.
"""

import enum
import ipaddress
import re
from collections.abc import Callable
from typing import TypeVar, cast

from appliance.settings.target import Target, is_ip_literal

_LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
"""A network of addresses of either kind."""

_T = TypeVar("_T")
_Choice = TypeVar("_Choice", bound=enum.StrEnum)


def matching(pattern: str, expected: str) -> Callable[[str], str]:
    """A parser of texts that match ``pattern`` as a whole."""

    def parse_matching(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"expected {expected}")
        return value

    return parse_matching


identifier = matching("[a-zA-Z0-9._-]{0,100}", "at most 100 of the characters a-z A-Z 0-9 . _ -")
"""The name of a cluster, which becomes part of the names of topics and of transactional ids."""


_HOST = r"(?:[a-zA-Z0-9][a-zA-Z0-9.-]*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
image = matching(
    rf"(?:(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?)?",
    "an image, such as registry.example:5000/name:1.0 or name@sha256:... with 64 hexadecimal digits",
)
"""The name of a container image, as Docker takes it."""


def expecting(expected: str, parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """The parser ``parse`` with a fault of our own: its ValueError says what is ``expected``."""

    def parse_expected(value: str) -> _T:
        try:
            return parse(value)
        except ValueError as error:
            raise ValueError(f"expected {expected}") from error

    return parse_expected


def optional(parse: Callable[[str], _T]) -> Callable[[str], _T | None]:
    """A parser to which the empty text is None."""
    return lambda value: parse(value) if value else None


def together(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """A parser of one of several values that go together: where one is None, ``parse`` makes nothing of the others."""
    return cast("Callable[[str], _T]", optional(parse))


def listed(parse: Callable[[str], _T]) -> Callable[[str], tuple[_T, ...]]:
    """A parser of comma-separated entries; the fault names the bad entry."""

    def parse_list(value: str) -> tuple[_T, ...]:
        return tuple(parse_entry(entry) for entry in value.split(",")) if value else ()

    def parse_entry(entry: str) -> _T:
        try:
            return parse(entry.strip())
        except ValueError as error:
            raise ValueError(f"{error}, got {entry.strip()!r} in the list") from error

    return parse_list


address = expecting("an IP address", lambda value: str(ipaddress.ip_address(value)) if value else "")
"""An IP address, without brackets."""

host = expecting("an IP address or a host name", lambda value: Target.parse(f"{value}:1").host)
"""An IP address or a host name, in its normal spelling."""

addresses = listed(expecting("an IP address", lambda value: str(ipaddress.ip_address(value))))

networks = listed(expecting("a network such as 10.0.0.0/8", ipaddress.ip_network))


def loopback_network(value: str) -> ipaddress.IPv4Network:
    """A part of 127.0.0.0/8."""
    try:
        network = ipaddress.IPv4Network(value)
    except ValueError as error:
        raise ValueError("expected a loopback network such as 127.64.0.0/10") from error
    if not network.subnet_of(_LOOPBACK):
        raise ValueError(f"expected a network inside {_LOOPBACK}, which no other machine reaches")
    return network


def loopback_target(value: str) -> Target:
    """One ``host:port`` on loopback, which no other machine reaches."""
    parsed = Target.parse(value)
    if not is_ip_literal(parsed.host) or not ipaddress.ip_address(parsed.host.strip("[]")).is_loopback:
        raise ValueError("expected a loopback address with a port, such as 127.0.0.1:53")
    return parsed


def listening_target(value: str) -> Target:
    """An address of this machine with a port; port 0 is any free one."""
    host, _, port = value.rpartition(":")
    parsed = Target.parse(f"{host}:1" if port == "0" else value)
    if not is_ip_literal(parsed.host):
        raise ValueError("expected an IP address with a port, such as 127.0.0.1:8080")
    return Target(parsed.host, int(port))


def utf8(value: str) -> str:
    """The value, unless the environment gave it in another encoding: it could not be sent, nor read again.

    Nor may it have a null character, with which no file has a name.
    """
    if "\0" in value:
        raise ValueError("expected text without a null character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError("expected UTF-8") from error
    return value


def without_login(value: str) -> str:
    """The value, unless it is a URL with a user or a password in it, which views and logs would show."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*|[^/?#]*:(?![0-9]+([/?#]|$)).*)@", value, re.DOTALL):
        raise ValueError("expected a URL without a user or a password in it")
    return value


def choice(kind: type[_Choice]) -> Callable[[str], _Choice]:
    """A parser of the values of ``kind``, in upper or lower case."""
    by_name = {member.value.lower(): member for member in kind}

    def parse_choice(value: str) -> _Choice:
        if value.lower() not in by_name:
            raise ValueError(f"expected one of {', '.join(kind)}")
        return by_name[value.lower()]

    return parse_choice


def yes_or_no(value: str) -> bool:
    """True for yes, in upper or lower case."""
    if value.lower() not in ("yes", "no", ""):
        raise ValueError("expected yes or no")
    return value.lower() == "yes"


def whole(minimum: int, maximum: int) -> Callable[[str], int]:
    """A parser of whole numbers from ``minimum`` to ``maximum``."""

    def parse_whole(value: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,15}", value) or not minimum <= int(value) <= maximum:
            raise ValueError(f"expected a whole number from {minimum} to {maximum}")
        return int(value)

    return parse_whole


def milliseconds(minimum: int, maximum: int) -> Callable[[str], float]:
    """A parser of whole milliseconds; the value is in seconds."""
    parse = whole(minimum, maximum)
    return lambda value: parse(value) / 1000


def seconds(minimum: float, maximum: float) -> Callable[[str], float]:
    """A parser of durations in seconds, with or without decimals."""

    def parse_seconds(value: str) -> float:
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value) or not minimum <= float(value) <= maximum:
            raise ValueError(f"expected seconds from {minimum:g} to {maximum:g}")
        return float(value)

    return parse_seconds
