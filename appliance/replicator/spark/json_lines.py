"""Messages of flat fields as one JSON object a line."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from appliance.errors import PeerError

Message = TypeVar("Message")


def encode_line(fields: Mapping[str, Any]) -> bytes:
    """The line."""
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def fields_of(line: bytes) -> dict[str, Any]:
    """The fields of a line.

    Raises:
        PeerError: it is no JSON object.
    """
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise PeerError(f"not a line of JSON: {error}") from error
    if not isinstance(fields, dict):
        raise PeerError("not a JSON object")
    return fields


def decoded(message: type[Message], fields: Mapping[str, Any], value: type) -> Message:
    """A message with fields of one type.

    Raises:
        PeerError: a field is missing, or of another type.
    """
    names = [each.name for each in dataclasses.fields(message)]  # type: ignore[arg-type]
    try:
        return message(**{name: value(fields[name]) for name in names})
    except (KeyError, ValueError, TypeError) as error:
        raise PeerError(f"not a {message.__name__.lower()}: {error!r}") from error
