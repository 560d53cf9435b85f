"""The JSON in which links remember, read as what anybody may have written: by its types, ranges and depth. Pure."""

import functools
import json
import typing
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from appliance.errors import BatchCorrupt, NewerRelease, PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record

_FAULTS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    BatchCorrupt,
    zlib.error,
)
_SHOWN = 100

T = TypeVar("T")


@contextmanager
def reading(topic: str, record: Record) -> Iterator[None]:
    """Translate all that content can raise into a PeerError that names the record's offset and shows its beginning."""
    try:
        yield
    except _FAULTS as error:
        fault = f"{type(error).__name__} {str(error)[:_SHOWN]!r} at {record.body[:_SHOWN]!r}"
        raise PeerError(f"{topic} holds something else at offset {record.offset}: {fault}") from error


def fields(data: bytes | None) -> dict[str, Any]:
    """The fields of an object; as all functions below only within ``reading``."""
    value = json.loads(data or b"")
    if not isinstance(value, dict):
        raise TypeError("no object")
    return value


def versioned(data: bytes | None, topic: str, offset: int, versions: Sequence[int]) -> dict[str, Any]:
    """The fields of a value with one of the ``versions``.

    Raises:
        NewerRelease: it has a later one.
    """
    value = fields(data)
    version = whole(value.pop("version"))
    if version > max(versions):
        raise NewerRelease(f"{topic} holds version {version} at offset {offset}: of a newer release")
    if version not in versions:
        raise ValueError(f"version {version}")
    return value


def whole(value: object, least: int = -(2**63), most: int = 2**63 - 1) -> int:
    """A whole number, of 64 bits at most."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"no whole number from {least} to {most}")
    return value


def count(digits: bytes | None) -> int | None:
    """The number in a header, in decimal digits; None: it is none of 64 bits."""
    return int(digits) if digits is not None and digits.isdigit() and len(digits) < 19 else None


def text(value: object, errors: str = "strict") -> str:
    """A text that is UTF-8, without half a surrogate pair."""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value.encode(errors=errors).decode()


def words(value: object) -> str:
    """A text that somebody typed: what was not UTF-8 in it is escaped."""
    return text(value, "backslashreplace")


def partition_of(key: Mapping[str, Any]) -> Partition:
    """The source partition in a key."""
    return Partition(text(key["topic"]), whole(key["partition"], 0, 2**31 - 1))


def build(kind: Callable[..., T], value: Mapping[str, Any], **ready: object) -> T:
    """A dataclass of the plain fields of a record, and of those that are ``ready``."""
    hints = _hints(kind)
    return kind(**{name: _CHECKS[hints[name]](content) for name, content in value.items()}, **ready)


_hints = functools.cache(typing.get_type_hints)
_CHECKS: Mapping[object, Callable[[Any], object]] = {int: whole, str: words, bool: bool, uuid.UUID: uuid.UUID}
