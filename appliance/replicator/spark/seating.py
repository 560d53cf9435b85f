"""What driver and Spark tasks say to each other: one JSON object a line, over a connection of each task's own.

::

    task   -> driver  {"worker", "slice"}              who I am, and the last slice I took part in
    driver -> task    {"slice", "starts", "lanes"}     the seat: its lanes with their replicas
    driver -> task    {"bytes_per_second"}             its share of the link's bound, 0: none; again when that changes
    task   -> driver  {"subject", "fault", "kind"}     what went wrong, or is well again when fault is empty
    driver -> task    {"stop": true}                   finish the transactions and return; so does the connection's end

A worker process keeps its lanes warm from slice to slice, so a seat goes to the worker that had it before. That is an
optimisation alone: whoever holds a lane without being its newest epoch is fenced.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from appliance.errors import PeerError
from appliance.link.model.checkpoint import StartOffsets
from appliance.link.model.replicas import Replica


@dataclass(frozen=True, slots=True)
class Hello:
    """A task's first line; that it is one of this run's, the connection has shown (``seat_sockets``)."""

    worker: str
    slice: int


@dataclass(frozen=True, slots=True)
class Seat:
    """What one task is to do in one slice; ``starts`` says where partitions begin that the link was made with."""

    slice: int
    starts: Mapping[str, StartOffsets]
    lanes: Mapping[int, tuple[Replica, ...]]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to be seen by the operator; ``kind`` is the error's class name."""

    subject: str
    fault: str
    kind: str


def encode_hello(hello: Hello) -> bytes:
    """The line."""
    return _line({"worker": hello.worker, "slice": hello.slice})


def decode_hello(line: bytes) -> Hello:
    """The hello in a line.

    Raises:
        PeerError: it holds none.
    """
    fields = _fields(line)
    try:
        return Hello(str(fields["worker"]), int(fields["slice"]))
    except (KeyError, ValueError, TypeError) as error:
        raise PeerError(f"not a hello: {error!r}") from error


def encode_seat(seat: Seat) -> bytes:
    """The line."""
    lanes = {
        str(lane): [
            [r.source_topic, r.partition, r.destination_topic, r.source_id.hex, r.destination_id.hex] for r in rs
        ]
        for lane, rs in seat.lanes.items()
    }
    starts = {topic: [known.source_id.hex, known.offsets] for topic, known in seat.starts.items()}
    return _line({"slice": seat.slice, "starts": starts, "lanes": lanes})


def decode_seat(line: bytes) -> Seat:
    """The seat in a line.

    Raises:
        PeerError: it holds none.
    """
    fields = _fields(line)
    try:
        lanes = {
            int(lane): tuple(Replica(s, int(n), d, uuid.UUID(si), uuid.UUID(di)) for s, n, d, si, di in replicas)
            for lane, replicas in fields["lanes"].items()
        }
        starts = {
            topic: StartOffsets(topic, uuid.UUID(source_id), tuple(map(int, offsets)))
            for topic, (source_id, offsets) in fields["starts"].items()
        }
        return Seat(int(fields["slice"]), starts, lanes)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise PeerError(f"not a seat: {error!r}") from error


def encode_share(bytes_per_second: int) -> bytes:
    """The line."""
    return _line({"bytes_per_second": bytes_per_second})


def decode_share(line: bytes) -> int:
    """The share of the link's bound in a line.

    Raises:
        PeerError: it holds none.
    """
    fields = _fields(line)
    try:
        return int(fields["bytes_per_second"])
    except (KeyError, ValueError, TypeError) as error:
        raise PeerError(f"not a share of the bound: {error!r}") from error


def encode_notice(notice: Notice) -> bytes:
    """The line."""
    return _line({"subject": notice.subject, "fault": notice.fault, "kind": notice.kind})


def decode_notice(line: bytes) -> Notice:
    """The notice in a line.

    Raises:
        PeerError: it holds none.
    """
    fields = _fields(line)
    try:
        return Notice(str(fields["subject"]), str(fields["fault"]), str(fields["kind"]))
    except KeyError as error:
        raise PeerError(f"not a notice: {error!r}") from error


STOP = b'{"stop":true}\n'


def _line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _fields(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise PeerError(f"not a line of JSON: {error}") from error
    if not isinstance(fields, dict):
        raise PeerError("not a JSON object")
    return fields


def seat_for(worker: str, free: Mapping[int, Seat], homes: Mapping[int, str]) -> int | None:
    """Which free seat a worker gets: the one it had, else one that nobody had, else any; None when none is free."""
    had = [number for number in free if homes.get(number) == worker]
    unclaimed = [number for number in free if number not in homes]
    return next(iter([*had, *unclaimed, *free]), None)
