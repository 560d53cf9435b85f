"""Messages as one JSON object a line, and those by which the SQL's jobs on other hosts find the process of a task.

::

    task -> driver  {"host", "port"}        where it serves them, on its control connection
    end  -> driver  {"task", "stage"}       where that task serves a job; again and again on the same connection
    driver -> end   {"host", "port"}, {}    there; or nowhere, so that the job ends
    end  -> task    {"task", "attempt"}     hello, as a task's own; then follow ``transform.messages``
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from appliance.errors import PeerError, said
from appliance.settings.target import Target

Message = TypeVar("Message")


@dataclass(frozen=True, slots=True)
class Question:
    """The question where a task serves a job; ``stage`` is Spark's number for the job's stage, larger in later ones."""

    task: int
    stage: int


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


def decoded(message: type[Message], fields: Mapping[str, Any]) -> Message:
    """A message whose fields are texts and numbers.

    Raises:
        PeerError: a field is missing, or of another type.
    """
    try:
        return message(**{name: kind(fields[name]) for name, kind in get_type_hints(message).items()})
    except (KeyError, ValueError, TypeError) as error:
        raise PeerError(f"not a {message.__name__.lower()}: {said(error)}") from error


def encode_answer(at: Target | None) -> bytes:
    """The line; None if the job has to end."""
    return encode_line(dataclasses.asdict(at) if at else {})


def decode_answer(line: bytes) -> Target | None:
    """The address in the driver's answer; None if the job has to end.

    Raises:
        PeerError: it is no answer.
    """
    fields = fields_of(line)
    return decoded(Target, fields) if fields else None
