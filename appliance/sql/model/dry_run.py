"""Some records before and after a statement, side by side: as a table, and as JSON. Pure."""

import enum
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, fields_of
from appliance.listing import number, totals
from appliance.output import printable
from appliance.tables import Table, Text, cell, table
from appliance.timestamps import utc

_SHOWN = 300
"""Most characters of a key, a value or a header in a table."""

_Json = dict[str, object]


class Fate(enum.StrEnum):
    """The result of a statement for a record."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    LEFT_OUT = "left out"
    FAILS = "fails"


@dataclass(frozen=True, slots=True)
class Tried:
    """A record of the source, and what the statement makes of it: None if it leaves it out, or fails for a reason."""

    partition: Partition
    before: Record
    after: Record | None
    reason: str = ""

    @property
    def fate(self) -> Fate:
        """The result for this record."""
        if self.reason:
            return Fate.FAILS
        if self.after is None:
            return Fate.LEFT_OUT
        return Fate.UNCHANGED if self.after.body == self.before.body else Fate.CHANGED


_STYLES = {Fate.LEFT_OUT: "dim", Fate.FAILS: "bold red"}


def as_table(tried: Sequence[Tried]) -> Table:
    """A row for each record."""
    whole = ("partition", "offset", "outcome")
    return table((*whole, "before", "after"), map(_row, tried), unbroken=whole, show_lines=True)


def _row(each: Tried) -> list[Text]:
    fate = each.fate
    after = [each.reason] if fate is Fate.FAILS else _lines(each.after) if fate is Fate.CHANGED and each.after else []
    columns = [str(each.partition)], [number(each.before.offset)], [str(fate)], _lines(each.before), after
    return [cell(*lines, style=_STYLES.get(fate, "")) for lines in columns]


def summary(tried: Sequence[Tried]) -> str:
    """The number of records with each fate."""
    fates = (each.fate for each in tried)
    return totals("record", fates, "nothing is written") if tried else "there are no records to try"


def as_json(digest: str, tried: Sequence[Tried]) -> str:
    """The records as a JSON object; a text that is not UTF-8 is ``{"hex": ...}``."""
    return json.dumps({"sql": digest, "records": list(map(_record, tried))}, indent=2)


def _record(tried: Tried) -> _Json:
    return {
        "topic": tried.partition[0],
        "partition": tried.partition[1],
        "offset": tried.before.offset,
        "timestamp": tried.before.timestamp,
        "time": utc(tried.before.timestamp / 1000) if tried.before.timestamp >= 0 else None,
        "outcome": tried.fate,
        "reason": tried.reason or None,
        "before": _fields(tried.before),
        "after": None if tried.after is None or tried.reason else _fields(tried.after),
    }


def _fields(record: Record) -> _Json:
    key, value, headers = fields_of(record.body)
    listed = [{"key": _value(name), "value": _value(content)} for name, content in headers]
    return {"key": _value(key), "value": _value(value), "headers": listed}


def _value(content: bytes | None) -> object:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"hex": content.hex()}


def _lines(record: Record) -> Iterator[str]:
    key, value, headers = fields_of(record.body)
    yield f"key    {_text(key)}"
    yield f"value  {_text(value)}"
    for name, content in headers:
        yield f"header {_text(name)}: {_text(content)}"


def _text(content: bytes | None) -> str:
    """Text if it is UTF-8 that a terminal shows, else hexadecimal; long ones are cut."""
    if content is None:
        return "null"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = f"0x{content.hex()}"
    text = printable(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({number(len(content))} bytes)"
