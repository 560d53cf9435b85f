"""The messages of driver and Spark tasks: one JSON object a line, over a control connection of each task's own.

::

    task   -> driver  {"task", "attempt"}               hello: its number in the job, and the try of it
    driver -> task    {"lanes", "starts", ...}          the assignment, and each new one
    task   -> driver  {"subject", "fault", "kind"}      a problem; that it is over, when fault is empty
    task   -> driver  {"records", "bytes", ...}         what was copied since then; with 0, that it lives
    task   -> driver  {"host", "port"}                  where it serves the SQL's jobs of other hosts
    driver -> task    {"stop": true}                    finish the transactions and return
    job    -> driver  {"task", "stage"}                 where that task serves it; again and again on one connection
    driver -> job     {"host", "port"}, {}              there; or nowhere, so that the job ends
    job    -> task    {"task", "attempt"}               hello, as a task's own; then follow ``sql.flight.messages``

A connection that ends without a stop is a failure: the task finishes its transactions and raises, so that Spark
restarts it, unless the driver is dead. A task's number decides its lanes, so a second try gets the lanes of the first;
an older epoch of a lane is fenced.
"""

import dataclasses
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_type_hints

from appliance.engine.model.chunk import Ledger
from appliance.errors import PeerError, error_text
from appliance.link.model.checkpoint import StartOffsets
from appliance.link.model.link_sql import LinkSql
from appliance.link.model.position import SourcePlace
from appliance.link.model.replicas import Replica
from appliance.settings.target import Target

Message = TypeVar("Message")


@dataclass(frozen=True, slots=True)
class Hello:
    """A task's first line; the connection has shown that the task belongs to this run (``control_connection``).

    ``attempt`` is Spark's number for this try: a later try has a larger one, in later jobs too.
    """

    task: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Question:
    """The question where a task serves a job; ``stage`` is Spark's number for the job's stage, larger in later ones."""

    task: int
    stage: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """The work of one task.

    ``starts`` are the first offsets of partitions that existed when the link was made; ``bytes_per_second`` is the
    task's share of the link's bound, 0 if unbounded. ``producers`` is the id of the source's topic of producers, if the
    task must know who wrote there. ``layout`` is the number of the layout whose lanes these are, and ``sql`` the SQL of
    this run.
    """

    lanes: Mapping[int, tuple[Replica, ...]] = field(default_factory=dict)
    starts: Mapping[str, StartOffsets] = field(default_factory=dict)
    bytes_per_second: int = 0
    producers: uuid.UUID | None = None
    layout: int = 0
    sql: LinkSql = field(default_factory=LinkSql)


@dataclass(frozen=True, slots=True)
class Notice:
    """A problem for the operator; ``kind`` is the error's class name."""

    subject: str
    fault: str
    kind: str


@dataclass(frozen=True, slots=True)
class CopySums:
    """The sums of a task's copies; empty sums are its heartbeat."""

    records: int
    bytes: int
    partitions: int
    raw_batches: int
    rebuilt_batches: int
    filtered: int = 0

    @classmethod
    def of(cls, ledger: Ledger) -> "CopySums":
        """The sums in a ledger."""
        return cls(
            records=ledger.records,
            bytes=ledger.bytes,
            partitions=len(ledger.partitions),
            raw_batches=ledger.raw_batches,
            rebuilt_batches=ledger.rebuilt_batches,
            filtered=ledger.filtered,
        )


Report = Notice | CopySums

STOP = b'{"stop":true}\n'


def encode_line(fields: Mapping[str, Any]) -> bytes:
    """The line."""
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def fields_of(line: bytes) -> dict[str, Any]:
    """The fields of a line."""
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise PeerError(f"not a line of JSON: {error}") from error
    if not isinstance(fields, dict):
        raise PeerError("not a JSON object")
    return fields


def decoded(message: type[Message], fields: Mapping[str, Any]) -> Message:
    """A message whose fields are texts and numbers."""
    try:
        return message(**{name: kind(fields[name]) for name, kind in get_type_hints(message).items()})
    except (KeyError, ValueError, TypeError) as error:
        raise PeerError(f"not a {message.__name__.lower()}: {error_text(error)}") from error


def encode_message(message: Hello | Question | Report | Target) -> bytes:
    """The line of a message with flat fields."""
    return encode_line(dataclasses.asdict(message))


def decode_hello(line: bytes) -> Hello | Question:
    """The first line of a connection, or a further question."""
    fields = fields_of(line)
    return decoded(Question, fields) if "stage" in fields else decoded(Hello, fields)


def encode_assignment(assignment: Assignment) -> bytes:
    """The line."""
    lanes = {
        str(lane): [
            [r.source_topic, r.partition, r.destination_topic, r.source_id.hex, r.destination_id.hex] for r in rs
        ]
        for lane, rs in assignment.lanes.items()
    }
    starts = {topic: [offsets.source_id.hex, offsets.places] for topic, offsets in assignment.starts.items()}
    producers = assignment.producers.hex if assignment.producers else None
    rest = {
        "bytes_per_second": assignment.bytes_per_second,
        "producers": producers,
        "layout": assignment.layout,
        "sql": dataclasses.astuple(assignment.sql),
    }
    return encode_line({"lanes": lanes, "starts": starts, **rest})


def decode_assignment(line: bytes) -> Assignment | None:
    """The assignment in the driver's line; None when it is a stop."""
    if line == STOP:
        return None
    fields = fields_of(line)
    try:
        lanes = {
            int(lane): tuple(Replica(s, int(n), d, uuid.UUID(si), uuid.UUID(di)) for s, n, d, si, di in replicas)
            for lane, replicas in fields["lanes"].items()
        }
        starts = {
            topic: StartOffsets(topic, uuid.UUID(source_id), tuple(SourcePlace(int(at), int(e)) for at, e in places))
            for topic, (source_id, places) in fields["starts"].items()
        }
        producers = uuid.UUID(fields["producers"]) if fields["producers"] else None
        number, text, salt = fields["sql"]
        sql, layout = LinkSql(int(number), str(text), str(salt)), int(fields["layout"])
        return Assignment(lanes, starts, int(fields["bytes_per_second"]), producers, layout, sql)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise PeerError(f"not an assignment: {error_text(error)}") from error


def decode_report(line: bytes) -> Report | Target:
    """The report in a line, or the address at which the task serves the SQL's jobs of other hosts."""
    fields = fields_of(line)
    if "host" in fields:
        return decoded(Target, fields)
    return decoded(Notice, fields) if "subject" in fields else decoded(CopySums, fields)


def encode_answer(at: Target | None) -> bytes:
    """The line; None if the job has to end."""
    return encode_line(dataclasses.asdict(at) if at else {})


def decode_answer(line: bytes) -> Target | None:
    """The address in the driver's answer; None if the job has to end."""
    fields = fields_of(line)
    return decoded(Target, fields) if fields else None
