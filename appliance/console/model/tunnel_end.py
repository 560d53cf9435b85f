"""An end of the tunnel, from its status document, as rows for people.

The source VM's document is the other VM's word: any key may be missing, and any value may have another type. Then the
row says unknown.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from appliance.console.model import text
from appliance.listing import some

_LIST_MAX = 50
_NUMBER_MAX = 1e18


@dataclass(frozen=True, slots=True)
class Row:
    """A name and its value, as text."""

    name: str
    value: str


def troubles(document: object) -> list[str]:
    """The end's own sentences about faults, and about tasks for the next days."""
    return [*_texts(document, "troubles"), *_texts(document, "remarks")]


def rows(document: object) -> Iterator[Row]:
    """The rows of one end."""
    yield Row("Release", _text(document, "version"))
    yield Row("Carried by", {"tcp": "TCP", "ssh": "SSH"}.get(_text(document, "carrier"), text.UNKNOWN))
    yield Row("Runs since", _text(document, "since")[:19].replace("T", " "))
    if _has(document, "listening"):
        yield Row("Listens on", _address(document, "listening"))
    if _has(document, "server"):
        reached = _found(document, "server", "reached")
        word = "reached" if reached is True else "not reached" if reached is False else text.UNKNOWN
        yield Row("Other end", f"{_address(document, 'server')}, {word}")
    yield Row(
        "Connections",
        f"{_count(document, 'connections', 'open')} open, {_count(document, 'connections', 'accepted')} accepted",
    )
    yield Row("To the brokers", _size(document, "bytes", "to_target"))
    yield Row("From the brokers", _size(document, "bytes", "from_target"))
    yield Row("Refused", _causes(document, "refused"))
    yield Row("Ended", _causes(document, "relays_ended"))
    yield Row("Handshakes", _durations(document, "handshakes"))
    yield Row("Dials", _durations(document, "dials"))
    yield Row("Certificate", _days(document, "certificate_days_left"))
    yield Row("Other end's certificate", _days(document, "peer_certificate_days_left"))
    if _found(document, "previous_secret") is True:
        yield Row("SHARED_SECRET_PREVIOUS", "is set")
    if _has(document, "brokers"):
        yield from _brokers(document)


def _brokers(document: object) -> Iterator[Row]:
    yield Row("List of brokers", f"{text.span(_number(document, 'brokers', 'age_seconds'))} old")
    for state, name in (
        ("open", "Brokers open"),
        ("refused", "Brokers refused"),
        ("closed", "Brokers without endpoint"),
    ):
        known = _found(document, "brokers", state)
        told = some(_texts(document, "brokers", state), _LIST_MAX) or "none"
        yield Row(name, told if isinstance(known, list) else text.UNKNOWN)
    endpoints = _found(document, "endpoints")
    if isinstance(endpoints, list):
        named = [f"{_text(one, 'broker')} at {_address(one)}" for one in endpoints]
        yield Row("Endpoints", some(named, _LIST_MAX) or "none")
    yield Row("Names resolved", _causes(document, "dns_queries"))


def _found(document: object, *path: str) -> Any:
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def _has(document: object, key: str) -> bool:
    return isinstance(document, dict) and key in document


def _text(document: object, *path: str) -> str:
    found = _found(document, *path)
    return found if isinstance(found, str) and found else text.UNKNOWN


def _texts(document: object, *path: str) -> list[str]:
    found = _found(document, *path)
    return [each for each in found if isinstance(each, str)][:_LIST_MAX] if isinstance(found, list) else []


def _number(document: object, *path: str) -> float | None:
    found = _found(document, *path)
    usable = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < _NUMBER_MAX
    return found if usable else None


def _count(document: object, *path: str) -> str:
    return text.count(_number(document, *path))


def _size(document: object, *path: str) -> str:
    return text.size(_number(document, *path))


def _days(document: object, key: str) -> str:
    days = _number(document, key)
    return text.UNKNOWN if days is None else f"valid for {text.count(int(days))} days"


def _address(document: object, *path: str) -> str:
    port = _number(document, *path, "port")
    return f"{_text(document, *path, 'address')}:{port:.0f}" if port is not None else text.UNKNOWN


def _causes(document: object, key: str) -> str:
    """The numbers by cause that are not 0."""
    found = _found(document, key)
    if not isinstance(found, dict):
        return text.UNKNOWN
    counted = [f"{_count(found, cause)} {cause.replace('_', ' ')}" for cause in found if _number(found, cause)]
    return some(counted, _LIST_MAX) or "none"


def _durations(document: object, key: str) -> str:
    median, slowest = (_number(document, key, f"p{part}_seconds") for part in (50, 99))
    shown = ", ".join(
        f"{name} {text.milliseconds(seconds * 1000)}"
        for name, seconds in (("median", median), ("p99", slowest))
        if seconds is not None
    )
    return f"{_count(document, key, 'count')}{': ' if shown else ''}{shown}"
