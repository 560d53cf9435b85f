"""The messages by which the SQL's jobs on other hosts find the process of a task: one JSON object a line.

::

    task -> driver  {"host", "port"}        where it serves them, on its control connection
    end  -> driver  {"task", "stage"}       where that task serves a job; again and again on the same connection
    driver -> end   {"host", "port"}, {}    there; or nowhere, so that the job ends
    end  -> task    {"task", "attempt"}     hello, as a task's own; then follow ``transform.messages``
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from appliance.errors import PeerError
from appliance.replicator.spark.json_lines import encode_line, fields_of
from appliance.settings.target import Target


@dataclass(frozen=True, slots=True)
class Question:
    """The question where a task serves a job; ``stage`` is Spark's number for the job's stage, larger in later ones."""

    task: int
    stage: int


def address_in(fields: Mapping[str, Any]) -> Target:
    """The address in a message.

    Raises:
        PeerError: it holds none.
    """
    try:
        return Target(str(fields["host"]), int(fields["port"]))
    except (KeyError, ValueError, TypeError) as error:
        raise PeerError(f"not an address: {error!r}") from error


def encode_answer(at: Target | None) -> bytes:
    """The line; None if the job has to end."""
    return encode_line({"host": at.host, "port": at.port} if at else {})


def decode_answer(line: bytes) -> Target | None:
    """The address in the driver's answer; None if the job has to end.

    Raises:
        PeerError: it is no answer.
    """
    fields = fields_of(line)
    return address_in(fields) if fields else None
