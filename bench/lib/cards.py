"""Events with a card number, of which every second one is to be left out, and the work of both contenders on them.

Those to leave out have a header, by which all contenders know them: it is all of a record that the predicates of
MirrorMaker 2's transforms can see. The card number is in the value's JSON, where only SQL masks it: MirrorMaker 2's
values are byte arrays, and none of Kafka's own transforms parses them. Its ``MaskField`` can only mask a field of a
struct, which other transforms have to make around the value.
"""

from collections.abc import Mapping

from bench.lib.events import events

STATEMENT = """\
SELECT key, regexp_replace(CAST(value AS STRING), '"card":"[0-9]*"', '"card":"masked"') AS value, headers
FROM records
WHERE NOT exists(headers, header -> header.key = 'foreign')
"""
"""The SQL that masks the card number, and keeps every second event."""

EVERY = 2
"""Of so many events in a row the first one is kept. They share a partition, so that each partition has both kinds."""

_HEADER = "foreign"
_KEPT, _LEFT_OUT = ',"card":"{:016}","country":"AT"', ',"card":"{:016}","country":"DE"'
_MARK = b'"country":"DE"'
_ADDED = len(_KEPT.format(0))
_HIGHEST = 10**16
_STEP = 7_919_000_000_003

Headers = list[tuple[str, str | bytes | None]]

FILTER: Mapping[str, str] = {
    "transforms": "drop",
    "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.drop.predicate": "foreign",
    "predicates": "foreign",
    "predicates.foreign.type": "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
    "predicates.foreign.name": _HEADER,
}
"""Transforms that leave out the same events, and mask nothing."""


def _on_the_value(name: str, kind: str, settings: Mapping[str, str]) -> dict[str, str]:
    entries = {"type": f"org.apache.kafka.connect.transforms.{kind}$Value", **settings}
    return {f"transforms.{name}.{key}": value for key, value in entries.items()}


FILTER_AND_MASK: Mapping[str, str] = {
    **FILTER,
    "transforms": "drop,wrap,add,mask,unwrap",
    **_on_the_value("wrap", "HoistField", {"field": "event"}),
    **_on_the_value("add", "InsertField", {"static.field": "card", "static.value": "4000000000000002"}),
    **_on_the_value("mask", "MaskField", {"fields": "card", "replacement": "masked"}),
    **_on_the_value("unwrap", "ExtractField", {"field": "event"}),
}
"""The same, and ``MaskField`` on a card number beside the value. The one inside the value stays."""


def card_events(count: int, size: int) -> list[bytes]:
    """``count`` different events of ``size`` bytes each, always the same; one of ``EVERY`` is not to be left out."""
    plain = [event.decode() for event in events(count, size - _ADDED)]
    return [_with_card(event, number).encode() for number, event in enumerate(plain)]


def _with_card(event: str, number: int) -> str:
    """The event with both fields after its id."""
    head, separator, tail = event.partition(',"type"')
    added = (_LEFT_OUT if number % EVERY else _KEPT).format(number * _STEP % _HIGHEST)
    return f"{head}{added}{separator}{tail}"


def headers(event: bytes) -> Headers:
    """The headers of an event: one if it is to be left out."""
    return [(_HEADER, b"1")] if _MARK in event else []


def kept(count: int) -> int:
    """The number of events among the first ``count`` that are not left out."""
    return -(-count // EVERY)
