"""The checkpoint of a lane, as records of its partition of the positions topic.

The topic is compacted: the newest record of each key holds. Keys and values are JSON, so that any consumer can read
them. Headers of a position are ignored by older releases: ``offsets``, the newest range of the partition's map of
offsets; ``rebuilt``, the number of copied records that did not go raw, in decimal digits; and ``trial``, the offsets
that the SQL is trying: first, following, and the number of tries. The kinds of key::

    {"topic", "partition"}          the position of a source partition; without a value: no longer copied
    {"topic", "partition", "gap"}   records that were not copied, and why: one entry of the gap ledger; deleted only
                                    where it has moved to another lane
    {"lane"}                        the lane's last owner
    {"mark"}                        the producer of the lane's last start
    {"link"}                        the link as it was made, and its layout; in partition 0 alone
    {"start"}                       a topic's first offsets by REPLICA_TOPICS_START, unless it is earliest; there too
    {"state"}                       the state of a topic's copy, or of the link if the name is empty; in each lane
    {"layout"}                      the number of the layout whose lane may write there; in each lane, once changed
    {"sql", "run"}                  a change of the link's SQL, by its number and the run that made it; in each lane
    {"promise"}, {"order"}          of a total order: see ``order_records``

A state and a change of the SQL have version 2, which older releases refuse: they cannot start a lane that has to obey.
A layout has version 3 for the same reason, and so has the record of a link whose layout has changed.
"""

import dataclasses
import functools
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from appliance.grouping import grouped, pieces
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, body, headers, key_and_value, pack
from appliance.link.model.checkpoint import CheckpointRecord, Gap, LinkRecord, Mark, Owner, StartOffsets, Tombstone
from appliance.link.model.copy_states import CopyState, StateRecord
from appliance.link.model.json_records import build, count, fields, partition_of, reading, text, versioned, whole
from appliance.link.model.layout import LANES_MAX, LayoutRecord
from appliance.link.model.link_sql import LinkSql, SqlChange
from appliance.link.model.offset_records import tail_headers, tail_of
from appliance.link.model.order_records import order_of, promise_of
from appliance.link.model.position import UNKNOWN, CopyEnd, Position, SourcePlace, Trial

_VERSION = 1
_OBEYED_VERSION = 2
_LAYOUT_VERSION = 3
_OBEYED = ("state", "sql")
_TOPIC = "the positions topic"
_RECORDS_A_BATCH = 500
_BYTES_A_BATCH = 500_000
"""Bounds of a batch of ours, before compression."""

_LZ4 = 3
_REBUILT, _TRIAL = "rebuilt", "trial"


def encode_position(partition: Partition, position: Position, now: int) -> Record:
    """The record that remembers a position; ``now`` is its timestamp in milliseconds."""
    # Thousands are written in a second, and a generic encoder would take six times as long.
    end = position.copy_end
    stopped = json.dumps(position.stopped) if position.stopped else '""'
    dropped = f',"dropped":{position.dropped}' if position.dropped else ""
    filtered = f',"filtered":{position.filtered}' if position.filtered else ""
    dead = f',"dead_letters":{position.dead_letters}' if position.dead_letters else ""
    copy_end = f"[{end.offset},{end.leader_epoch},{end.producer_id},{end.producer_epoch}]" if end else "null"
    value = (
        f'{{"version":{_VERSION},"source_id":"{position.source_id.hex}","destination_id":"{position.destination_id.hex}"'
        f',"next_offset":{position.next_offset},"leader_epoch":{position.leader_epoch},"records":{position.records}'
        f',"bytes":{position.bytes},"timestamp":{position.timestamp},"stopped":{stopped}'
        f',"stopped_at":{position.stopped_at},"copy_end":{copy_end}{dropped}{filtered}{dead}}}'
    )
    rebuilt = () if position.rebuilt is None else ((_REBUILT, b"%d" % position.rebuilt),)
    trial = ((_TRIAL, _json(position.trial)),) if position.trial else ()
    optional = *tail_headers(position.tail), *rebuilt, *trial
    return Record(0, now, body(_position_key(partition), value.encode(), optional))


@functools.lru_cache(maxsize=65536)
def _position_key(partition: Partition) -> bytes:
    return _json(_partition_key(partition))


def encode_gap(gap: Gap, now: int) -> Record:
    """The record that remembers a gap."""
    value = dataclasses.asdict(gap)
    del value["partition"]
    return _record(_gap_key(gap), value, now)


def encode_owner(lane: int, owner: Owner, now: int) -> Record:
    """The record that remembers a lane's owner."""
    return _record({"lane": lane}, dataclasses.asdict(owner), now)


def encode_tombstone(partition: Partition, now: int) -> Record:
    """The record that deletes a position."""
    return Record(0, now, body(_json(_partition_key(partition)), None))


def encode_gap_tombstone(gap: Gap, now: int) -> Record:
    """The record that deletes an entry of the gap ledger, which has moved to another lane."""
    return Record(0, now, body(_json(_gap_key(gap)), None))


def encode_mark(mark: Mark, now: int) -> Record:
    """The record up to which a starting lane reads."""
    return _record({"mark": mark.lane}, {"producer_id": mark.producer_id, "epoch": mark.epoch}, now)


def encode_link(link: LinkRecord, now: int) -> Record:
    """The record of the link as it was made."""
    value = dataclasses.asdict(link)
    for name in ("producers", "number", "placed"):
        if not value[name]:
            del value[name]
    return _record({"link": 0}, value, now, _LAYOUT_VERSION if link.number else _VERSION)


def encode_layout(lane: int, layout: LayoutRecord, now: int) -> Record:
    """The record of the layout whose lane may write."""
    value = dataclasses.asdict(layout)
    if not layout.run:  # unknown to older releases, which a finished change must not stop
        del value["run"]
    return _record({"layout": lane}, value, now, _LAYOUT_VERSION)


def encode_starts(starts: StartOffsets, now: int) -> Record:
    """The record of the first offsets of a topic's partitions."""
    offsets, epochs = zip(*starts.places, strict=True)
    return _record({"start": starts.topic}, {"source_id": starts.source_id, "offsets": offsets, "epochs": epochs}, now)


def encode_state(state: StateRecord, now: int) -> Record:
    """The record that remembers a state."""
    value = dataclasses.asdict(state)
    del value["topic"]
    return _record({"state": state.topic}, value, now, _OBEYED_VERSION)


def encode_sql(change: SqlChange, now: int) -> Record:
    """The record that remembers a change of the SQL."""
    offsets = grouped((topic, (partition, offset)) for (topic, partition), offset in change.offsets.items())
    sql = {"text": change.sql.text, "digest": change.sql.digest, "salt": change.sql.salt}
    value = {**sql, "generation": change.generation, "since": change.since, "offsets": offsets}
    return _record({"sql": change.sql.number, "run": change.run}, value, now, _OBEYED_VERSION)


def packed(records: Sequence[Record]) -> Iterator[tuple[bytes, int]]:
    """The records as batches, each with its number of records; every broker accepts their size.

    Several in one batch are compressed: they differ little.
    """
    sized = ((record, max(len(record.body), _BYTES_A_BATCH // _RECORDS_A_BATCH)) for record in records)
    for piece in pieces(sized, _BYTES_A_BATCH):
        yield pack(piece, _LZ4 if len(piece) > 1 else 0), len(piece)


def decode(record: Record) -> CheckpointRecord:
    """Decode a record.

    Raises:
        PeerError: a foreign writer or a newer appliance has written to the positions topic.
    """
    with reading(_TOPIC, record):
        key_bytes, value_bytes = key_and_value(record.body)
        key = fields(key_bytes)
        if value_bytes is None and key.keys() == {"topic", "partition"}:
            return Tombstone(partition_of(key))
        if value_bytes is None and key.keys() == {"topic", "partition", "gap"}:
            first, found = map(whole, key["gap"])
            return Tombstone(partition_of(key), (first, found))
        remembered = _remembered(key, versioned(value_bytes, _TOPIC, record.offset, _versions(key)))
        if not isinstance(remembered, tuple) or not isinstance(remembered[1], Position):
            return remembered
        partition, position = remembered
        fields_of_body = headers(record.body)
        trial = Trial(*map(whole, json.loads(fields_of_body[_TRIAL] or b""))) if _TRIAL in fields_of_body else None
        rebuilt = count(fields_of_body.get(_REBUILT))
        return partition, dataclasses.replace(position, tail=tail_of(fields_of_body), rebuilt=rebuilt, trial=trial)


def newest(records: Iterable[Record]) -> Iterator[tuple[int, CheckpointRecord]]:
    """Decode only the newest record of each key; each comes with its offset."""
    last = {key_and_value(record.body)[0]: record for record in records}
    return ((record.offset, decode(record)) for record in last.values())


def _versions(key: Mapping[str, Any]) -> Sequence[int]:
    """The known versions of a kind of record."""
    if any(kind in key for kind in _OBEYED):
        return (_OBEYED_VERSION,)
    if "layout" in key:
        return (_LAYOUT_VERSION,)
    return (_VERSION, _LAYOUT_VERSION) if "link" in key else (_VERSION,)


def _remembered(key: Mapping[str, Any], value: dict[str, Any]) -> CheckpointRecord:
    if "lane" in key:
        return whole(key["lane"], 0, LANES_MAX), build(Owner, value)
    if "mark" in key:
        return build(Mark, value, lane=whole(key["mark"], 0, LANES_MAX))
    if "link" in key:
        placed = tuple((text(topic), whole(number), whole(lane)) for topic, number, lane in value.pop("placed", ()))
        return build(LinkRecord, value, lanes=whole(value.pop("lanes"), 1, LANES_MAX), placed=placed)
    if "layout" in key:
        return build(LayoutRecord, value, lanes=whole(value.pop("lanes"), 1, LANES_MAX))
    if "promise" in key:
        return promise_of(value)
    if "order" in key:
        return order_of(key["order"], value)
    if "start" in key:
        offsets = [whole(offset) for offset in value["offsets"]]
        places = map(SourcePlace, offsets, map(whole, value.get("epochs") or [-1] * len(offsets)))
        return StartOffsets(text(key["start"]), uuid.UUID(value["source_id"]), tuple(places))
    if "sql" in key:
        return _sql_change(key, value)
    if "state" in key:
        state, details = CopyState(value.pop("state")), value.pop("details", {})
        text_bytes = json.dumps({**details}, ensure_ascii=False, allow_nan=False).encode(errors="replace")
        return build(StateRecord, value, topic=text(key["state"]), state=state, details=json.loads(text_bytes))
    partition = partition_of(key)
    if "gap" in key:
        return build(Gap, value, partition=partition)
    whole(value["next_offset"], UNKNOWN)
    end = value.pop("copy_end", None)
    copy_end = CopyEnd(*map(whole, end)) if end else None
    return partition, build(Position, {"leader_epoch": -1, **value}, copy_end=copy_end)


def _sql_change(key: Mapping[str, Any], value: Mapping[str, Any]) -> SqlChange:
    sql = LinkSql(whole(key["sql"]), text(value["text"]), text(value["salt"]))
    listed = ((topic, *pair) for topic, pairs in value["offsets"].items() for pair in pairs)
    offsets = {Partition(text(topic), whole(number)): whole(offset) for topic, number, offset in listed}
    return SqlChange(sql, text(key["run"]), whole(value["generation"]), whole(value["since"]), offsets)


def _partition_key(partition: Partition) -> dict[str, Any]:
    return {"topic": partition[0], "partition": partition[1]}


def _gap_key(gap: Gap) -> dict[str, Any]:
    return {**_partition_key(gap.partition), "gap": [gap.first, gap.found]}


def _record(key: Mapping[str, Any], value: Mapping[str, Any], now: int, version: int = _VERSION) -> Record:
    whole = {"version": version, **value}
    return Record(0, now, body(_json(key), _json(whole)))


def _json(fields: Mapping[str, Any] | Trial) -> bytes:
    return json.dumps(fields, separators=(",", ":"), default=lambda unique: unique.hex).encode()
