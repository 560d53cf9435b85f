"""The lengths in a response, checked before kio reads it.

kio makes room for every item that an array announces. Where there is not that much memory, its allocator ends the
process, and nothing can catch that. It also reads null for an array that the protocol does not allow to be null.
"""

import dataclasses
import functools
import struct
import typing
from collections.abc import Callable
from typing import Any, cast

from appliance.kafka.records.varint import Buffer, read_unsigned

Walk = Callable[[Buffer, int], int]
"""Gives the index behind what begins at an index; raises ValueError, LookupError, struct.error or BatchCorrupt."""

_SIZES = {"bool": 1, "int8": 1, "int16": 2, "error_code": 2, "int32": 4, "timedelta_i32": 4, "int64": 8, "uuid": 16}
_SIZES |= {"timedelta_i64": 8, "datetime_i64": 8}


def _walk(entity: Any) -> Walk:
    """The walk over an entity: no array announces more items than bytes have come, or is null where none may be."""
    hints, flexible, fields = typing.get_type_hints(entity), entity.__flexible__, dataclasses.fields(entity)
    all_steps = [
        (f.metadata.get("tag"), _step(hints[f.name], f.metadata.get("kafka_type", ""), flexible)) for f in fields
    ]
    steps, tagged = [step for tag, step in all_steps if tag is None], dict(all_steps)

    def over(data: Buffer, at: int) -> int:
        for step in steps:
            at = step(data, at)
        return _over_tags(tagged, data, at) if flexible else at

    return over


walk = cast("Callable[[Any], Walk]", functools.cache(_walk))


def _step(hint: Any, kafka_type: str, flexible: bool) -> Walk:
    named, size = kinds(hint), _SIZES.get(kafka_type)
    entity = next((walk(kind) for kind in named if dataclasses.is_dataclass(kind)), None)
    form = ">h" if kafka_type == "string" else ">i"

    def one(data: Buffer, at: int) -> int:
        return entity(data, at) if entity else at + size if size else sum(_length(data, at, flexible, form))

    def each(data: Buffer, at: int) -> int:
        count, at = _length(data, at, flexible, null=type(None) in named)
        if count > len(data) - at:
            raise ValueError(f"an array of {count} items in {len(data)} bytes")
        for _ in range(0 if size else count):
            at = one(data, at)
        return at + count * (size or 0)

    return each if ... in named else one


def kinds(hint: Any) -> tuple[Any, ...]:
    """The types named in a type: those of a union, and of a tuple's items."""
    arguments = typing.get_args(hint)
    return tuple(kind for argument in arguments for kind in kinds(argument)) if arguments else (hint,)


def _over_tags(tagged: dict[int | None, Walk], data: Buffer, at: int) -> int:
    count, at = read_unsigned(data, at)
    for _ in range(count):
        tag, at = read_unsigned(data, at)
        size, at = read_unsigned(data, at)
        if tag in tagged and tagged[tag](memoryview(data)[: at + size], at) != at + size:
            raise ValueError(f"a tagged field is not of its {size} bytes")
        at += size
    return at


def _length(data: Buffer, at: int, flexible: bool, form: str = ">i", *, null: bool = True) -> tuple[int, int]:
    """The length at ``at``, that of null as 0 if it may be ``null``, and the index behind it."""
    if flexible:
        size, at = read_unsigned(data, at)
        size -= 1
    else:
        (size,), at = struct.unpack_from(form, data, at), at + struct.calcsize(form)
    if size < 0 and not null:
        raise ValueError("null in place of an array")
    return max(size, 0), at
