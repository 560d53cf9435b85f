"""The records of a total order, as bytes. Keys and values are JSON.

In the positions topic of each cluster, beside those of ``checkpoint_records``::

    {"promise"}                     the newest promise of the lane
    {"order": [topic, partition]}   the cluster's part in the order of a partition of T
    {"topic", "partition"}          the position of an origin, whose topic is called ``cluster:T``

In a hidden log, the last record before each commit marker is a mark: its place tells it from what users have written.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import Outgoing
from appliance.kafka.records.records import Record, body, key_and_value, pack
from appliance.link.model.json_records import reading, text, versioned, whole
from appliance.link.model.order import (
    Digest,
    Epoch,
    HiddenLog,
    Members,
    OrderRecord,
    Origin,
    Place,
    Promise,
    Run,
    SequenceMark,
    Vector,
)
from appliance.link.model.position import CopyEnd

_VERSION = 1
_TOPIC = "a hidden log"


def encode_promise(lane: int, promise: Promise, now: int) -> Record:
    """The record that remembers a promise; ``now`` is its timestamp in milliseconds."""
    value = {
        "epoch": promise.epoch,
        "members": promise.members,
        "named": promise.named,
        "since": promise.since,
        "lost": promise.lost,
        "cause": promise.cause,
    }
    return _record({"promise": lane}, value, now)


def encode_order(partition: Partition, record: OrderRecord, now: int) -> Record:
    """The record that remembers a cluster's part in the order."""
    value = {
        "accepted": record.accepted,
        "rank": record.rank,
        "digest": record.digest,
        "end": _end(record.end),
        "following": record.following,
        "alone": record.alone,
        "global_id": record.global_id.hex,
        "hidden_id": record.hidden_id.hex,
        "stopped": record.stopped,
        "owes": record.owes,
        "first": record.first,
        "first_rank": record.first_rank,
        "hidden": _hidden(record.hidden) if record.hidden else None,
    }
    return _record({"order": partition}, value, now)


def encode_sequence_mark(mark: SequenceMark, now: int) -> Outgoing:
    """The batch with a mark, for the end of a transaction in a hidden log."""
    value = {
        "epoch": mark.epoch,
        "start": mark.start,
        "runs": [(*run.origin, run.first, run.length) for run in mark.runs],
        "vector": _vector(mark.vector),
        "before": mark.before,
        "opens": mark.opens,
    }
    return Outgoing(pack([_record({"mark": mark.rank}, value, now)], 0), 1, 0, 1, now, raw=True)


def decode_sequence_mark(record: Record) -> SequenceMark:
    """Decode a mark.

    Raises:
        PeerError: a foreign writer or a newer appliance has written to the hidden log.
    """
    with reading(_TOPIC, record):
        value = versioned(key_and_value(record.body)[1], _TOPIC, record.offset, [_VERSION])
        runs = (
            Run(_origin(cluster, number), whole(first, 0), whole(length, 1))
            for cluster, number, first, length in value["runs"]
        )
        return SequenceMark(
            epoch_of(value["epoch"]),
            whole(value["start"], 0),
            tuple(runs),
            _vector_of(value["vector"]),
            _digest_of(value["before"]),
            bool(value["opens"]),
        )


def promise_of(value: Mapping[str, Any]) -> Promise:
    """The promise in a record's value; as all functions below only within ``reading``."""
    named = tuple(map(_members_of, value["named"]))
    lost = _members_of(value["lost"])
    members, cause = _members_of(value["members"]), text(value.get("cause", ""))
    return Promise(epoch_of(value["epoch"]), members, named, whole(value["since"]), lost, cause)


def order_of(key: Any, value: Mapping[str, Any]) -> tuple[Partition, OrderRecord]:
    """The partition of T, and the cluster's part in its order."""
    topic, number = key
    record = OrderRecord(
        epoch_of(value["accepted"]),
        whole(value["rank"], 0),
        _digest_of(value["digest"]),
        _end_of(value["end"]),
        whole(value["following"], -1),
        _hidden_of(value["hidden"]) if value["hidden"] else None,
        epoch_of(value["alone"]),
        UUID(value["global_id"]),
        UUID(value["hidden_id"]),
        text(value["stopped"]),
        whole(value.get("owes", 0), 0),
        whole(value.get("first", 0), 0),
        whole(value.get("first_rank", 0), 0),
    )
    return Partition(text(topic), whole(number, 0)), record


def epoch_of(value: Any) -> Epoch:
    """An epoch, from its number and home."""
    number, home = value
    return Epoch(whole(number, 0), text(home))


def _hidden(hidden: HiddenLog) -> Mapping[str, Any]:
    return {
        "epoch": hidden.epoch,
        "first": hidden.first,
        "first_rank": hidden.first_rank,
        "opened": hidden.opened,
        "rank": hidden.rank,
        "digest": hidden.digest,
        "vector": _vector(hidden.vector),
        "ahead": hidden.ahead,
        "end": _end(hidden.end),
    }


def _hidden_of(value: Mapping[str, Any]) -> HiddenLog:
    first, first_rank, opened, rank = (whole(value[name], 0) for name in ("first", "first_rank", "opened", "rank"))
    digest, vector = _digest_of(value["digest"]), _vector_of(value["vector"])
    end = _end_of(value["end"])
    return HiddenLog(
        epoch_of(value["epoch"]), first, first_rank, opened, rank, digest, vector, whole(value["ahead"]), end
    )


def _vector(vector: Vector) -> list[tuple[object, ...]]:
    return [(*origin, place.topic_id.hex, place.next_offset, place.leader_epoch) for origin, place in vector.items()]


def _vector_of(value: Iterable[Any]) -> Vector:
    return {
        _origin(cluster, number): Place(UUID(topic_id), whole(offset, 0), whole(epoch, -1))
        for cluster, number, topic_id, offset, epoch in value
    }


def _origin(cluster: object, number: object) -> Origin:
    return Origin(text(cluster), whole(number, 0))


def _members_of(value: Any) -> Members:
    return tuple(map(text, value))


def _digest_of(value: Any) -> Digest:
    settled, cluster, number, first, following = value
    return Digest(text(settled), text(cluster), whole(number), whole(first), whole(following))


def _end(end: CopyEnd | None) -> tuple[int, ...] | None:
    return (end.offset, end.leader_epoch, end.producer_id, end.producer_epoch) if end else None


def _end_of(value: Any) -> CopyEnd | None:
    return CopyEnd(*map(whole, value)) if value else None


def _record(key: Mapping[str, Any], value: Mapping[str, Any], now: int) -> Record:
    return Record(0, now, body(_json(key), _json({"version": _VERSION, **value})))


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
