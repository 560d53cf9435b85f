"""Both ends of the tunnel for people, from the status document that the end on this VM serves.

The far end's document is the other VM's word, and either may be of another release: any key may be missing, and any
value may have another type. Then the page says unknown.
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


@dataclass(frozen=True, slots=True)
class TunnelEnd:
    """An end of the tunnel; without rows if there is no document of it.

    ``troubles`` are its own sentences about faults, and about tasks for the next days. If the document is old, it is
    ``of`` a time, and ``unknown_since`` another, for a ``reason``; else these are empty.
    """

    rows: tuple[Row, ...]
    troubles: tuple[str, ...] = ()
    of: str = ""
    unknown_since: str = ""
    reason: str = ""


def both_ends(document: object) -> tuple[TunnelEnd, TunnelEnd] | None:
    """This VM's end and the far one; None if this is no document of both."""
    near, far, unknown = (_value(document, key) for key in ("near", "far", "far_unknown"))
    if not isinstance(near, dict):
        return None
    why = (_time(document, "far_unknown", "since"), _text(document, "far_unknown", "reason")) if unknown else ("", "")
    return TunnelEnd(*_shown(near)), TunnelEnd(*_shown(far), _time(document, "far_at"), *why)


def _shown(document: object) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    if not document:
        return (), ()
    return tuple(_rows(document)), (*_texts(document, "troubles"), *_texts(document, "remarks"))


def _rows(document: object) -> Iterator[Row]:
    yield Row("Release", _text(document, "version"))
    yield Row("Carried by", {"tcp": "TCP", "ssh": "SSH"}.get(_text(document, "carrier"), text.UNKNOWN))
    yield Row("Runs since", _time(document, "since"))
    if _has(document, "listening"):
        yield Row("Listens on", _address(document, "listening"))
    if _has(document, "server"):
        reached = _value(document, "server", "reached")
        word = "reached" if reached is True else "not reached" if reached is False else text.UNKNOWN
        yield Row("Other end", f"{_address(document, 'server')}, {word}")
    vms = _value(document, "source_vms")
    for one in vms[:_LIST_MAX] if isinstance(vms, list) else ():
        yield Row(f"Source VM {_text(one, 'server')}", f"{_text(one, 'condition')}, {_count(one, 'connections')} open")
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
    if _value(document, "previous_secret") is True:
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
        targets = some(_texts(document, "brokers", state), _LIST_MAX) or "none"
        yield Row(name, targets if isinstance(_value(document, "brokers", state), list) else text.UNKNOWN)
    endpoints = _value(document, "endpoints")
    if isinstance(endpoints, list):
        addresses = [f"{_text(one, 'broker')} at {_address(one)}" for one in endpoints]
        yield Row("Endpoints", some(addresses, _LIST_MAX) or "none")
    yield Row("Names resolved", _causes(document, "dns_queries"))


def _value(document: object, *path: str) -> Any:
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def _has(document: object, key: str) -> bool:
    return isinstance(document, dict) and key in document


def _text(document: object, *path: str) -> str:
    value = _value(document, *path)
    return value if isinstance(value, str) and value else text.UNKNOWN


def _time(document: object, *path: str) -> str:
    return _text(document, *path)[:19].replace("T", " ")


def _texts(document: object, *path: str) -> list[str]:
    value = _value(document, *path)
    return [each for each in value if isinstance(each, str)][:_LIST_MAX] if isinstance(value, list) else []


def _number(document: object, *path: str) -> float | None:
    value = _value(document, *path)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _NUMBER_MAX
    return value if usable else None


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
    causes = _value(document, key)
    if not isinstance(causes, dict):
        return text.UNKNOWN
    counts = [f"{_count(causes, cause)} {cause.replace('_', ' ')}" for cause in causes if _number(causes, cause)]
    return some(counts, _LIST_MAX) or "none"


def _durations(document: object, key: str) -> str:
    median, slowest = (_number(document, key, f"p{part}_seconds") for part in (50, 99))
    shown = ", ".join(
        f"{name} {text.milliseconds(seconds * 1000)}"
        for name, seconds in (("median", median), ("p99", slowest))
        if seconds is not None
    )
    return f"{_count(document, key, 'count')}{': ' if shown else ''}{shown}"
