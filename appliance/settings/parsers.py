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

TOPIC_NAME_MAX = 249
"""Characters in the name of a Kafka topic, at most."""

_LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")
_IDENTIFIER_MAX = 100

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
"""A network of addresses of either kind."""

_T = TypeVar("_T")
_Choice = TypeVar("_Choice", bound=enum.StrEnum)


def identifier(value: str) -> str:
    """The name of a cluster, which becomes part of the names of topics and of transactional ids."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]*", value) or len(value) > _IDENTIFIER_MAX:
        raise ValueError(f"expected at most {_IDENTIFIER_MAX} of the characters a-z A-Z 0-9 . _ -")
    return value


def topic_name(value: str) -> str:
    """A topic's name; may be empty.

    Names that begin with two underscores are Kafka's own, as some clients treat them.
    """
    if value and not re.fullmatch(rf"(?!__|\.{{1,2}}$)[a-zA-Z0-9._-]{{1,{TOPIC_NAME_MAX}}}", value):
        raise ValueError(f"expected a topic's name: 1 to {TOPIC_NAME_MAX} of the characters a-z A-Z 0-9 . _ -")
    return value


def topic_suffix(value: str) -> str:
    """The end of a copy's name: legal in a topic's name, with room for a dot and at least one character before it."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]*", value):
        raise ValueError("expected only characters that are legal in a topic name: a-z A-Z 0-9 . _ -")
    if len(value) > TOPIC_NAME_MAX - 2:
        raise ValueError(f"expected at most {TOPIC_NAME_MAX - 2} characters: a topic name has {TOPIC_NAME_MAX} at most")
    return value


def regular_expression(value: str) -> str:
    """A regular expression in Python's grammar, which compiles it within limits."""
    try:
        re.compile(value)
    except (OverflowError, RecursionError) as error:
        raise ValueError("expected a regular expression with smaller numbers and fewer nested brackets") from error
    except re.error as error:
        where = "" if error.pos is None else f" at character {error.pos + 1}"
        raise ValueError(f"expected a regular expression: {error.msg}{where}") from error
    return value


def topics_regex(value: str) -> str:
    """A regular expression of topics' names; a comma of a list, as MirrorMaker 2 has it, would match nothing."""
    if "," in value and (parts := _split(value)) != [value]:
        wanted = "|".join(part.strip() for part in parts)
        raise ValueError(f"expected a regular expression: topics have no comma in their names; a list is {wanted}")
    return regular_expression(value)


def regexes(value: str) -> str:
    """Regular expressions, comma separated, as one that matches what any of them does; a comma in brackets is its own.

    MirrorMaker 2 lists topics and groups so.
    """
    parts = [regular_expression(part.strip()) for part in _split(value)]
    return "|".join(f"(?:{part})" for part in parts if part)


def _split(value: str) -> list[str]:
    """The text between commas that are neither escaped nor inside of brackets."""
    return re.findall(r"((?:\\.|\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|[^,])+)", value)


def address(value: str) -> str:
    """An IP address, without brackets."""
    try:
        return str(ipaddress.ip_address(value)) if value else ""
    except ValueError as error:
        raise ValueError("expected an IP address") from error


def host(value: str) -> str:
    """An IP address or a host name, in its normal spelling."""
    try:
        return Target.parse(f"{value}:1").host if value else ""
    except ValueError as error:
        raise ValueError("expected an IP address or a host name") from error


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


def _network(value: str) -> Network:
    try:
        return ipaddress.ip_network(value)
    except ValueError as error:
        raise ValueError("expected a network such as 10.0.0.0/8") from error


networks = listed(_network)


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
    """The value, unless the environment gave it in another encoding: it could not be sent, nor read again."""
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


def audit_path(value: str) -> str:
    """An absolute path, or the URL of a folder in an object store; empty for none."""
    if not re.fullmatch(r"(/[^\x00-\x1f*?\[\]{}\\]*|(s3a|gs)://[^\s?#*\[\]{}\\]+)?", value):
        raise ValueError("expected an absolute path of a folder, or a URL such as s3a://bucket/folder")
    return value.rstrip("/")


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


def matching(pattern: str, expected: str) -> Callable[[str], str]:
    """A parser of texts that match ``pattern`` as a whole."""

    def parse_matching(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"expected {expected}")
        return value

    return parse_matching


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


def replication_factor(value: str) -> int:
    """A replication factor, or -1 for the broker's default."""
    if value == "-1":
        return -1
    try:
        return whole(1, 32767)(value)
    except ValueError as error:
        raise ValueError("expected -1 for the broker's default, or a whole number from 1 to 32767") from error
