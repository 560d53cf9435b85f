"""The snapshot as JSON, and the health: all its fields, null where unknown, times as ISO 8601.

The keys of the snapshot's own classes are their fields (``topic_status``); values of other folders have a form here.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any

from appliance.groups.model.group_plan import GroupPlan, PartitionPlan
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.link.model.checkpoint import Gap, Owner
from appliance.link.model.copy_states import StateRecord
from appliance.link.model.link_sql import SqlChange
from appliance.link.model.mirror_records import Heartbeat
from appliance.link.model.problems import Fault
from appliance.link.model.standby import Members
from appliance.status.model.messages import problems, remarks, remedies, utc
from appliance.status.model.snapshot import AuditStatus, ClusterStatus, LaneStatus, LinkState, Snapshot
from appliance.status.model.topic_status import BlockingTransaction, PartitionStatus, TopicStatus

Json = dict[str, object]


def document(snapshot: Snapshot) -> Json:
    """The JSON object of a snapshot."""
    return _object(snapshot)


def _object(value: Any) -> Json:
    kind: Any = type(value)
    return {key: _json(get(value)) for key, get in _keys(kind)}


def _json(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [*map(_json, value)]
    form = _FORMS.get(type(value))
    return form(value) if form else value


@cache
def _keys(kind: Any) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """The keys of a class in their order, each with the function that gets its value."""
    keys: list[tuple[str, Callable[[Any], Any]]] = []
    for each in fields(kind):
        if key := each.metadata.get("key", each.name):
            keys.append((key, _DERIVED.get(key, attrgetter(each.name))))
        keys += [(key, _DERIVED.get(key, attrgetter(key))) for key in each.metadata.get("followed_by", ())]
    return tuple(keys)


def _gap(gap: Gap) -> Json:
    return {
        "first": gap.first,
        "next": gap.next if gap.next >= 0 else None,
        "cause": gap.cause,
        "found": utc(gap.found),
    }


def _group(group: GroupPlan, is_current: bool) -> Json:
    """A group as last seen; its lag only if that is current."""
    return {
        "group": group.name,
        "kind": group.kind,
        "state": group.state,
        "lag": group.lag if is_current else None,
        "refused": group.refused or None,
        "partitions": [_offsets(partition, is_current) for partition in group.partitions],
    }


def _offsets(partition: PartitionPlan, is_current: bool) -> Json:
    return {
        "topic": partition.source[0],
        "partition": partition.source[1],
        "source_offset": partition.upstream.offset,
        "translated": partition.target.offset if partition.target else None,
        "destination_offset": partition.committed.offset if partition.committed else None,
        "lag": partition.lag if is_current else None,
        "state": partition.state,
        "reason": partition.reason or None,
    }


def _owner(owner: Owner) -> Json:
    return {"run": owner.run, "worker": owner.worker, "host": owner.host, "since": utc(owner.since)}


def _sql(change: SqlChange) -> Json:
    """The link's SQL; digest and text are null if records are copied as they are, again."""
    sql = {"number": change.sql.number, "digest": change.sql.digest or None, "text": change.sql.text or None}
    return {**sql, "salted": bool(change.sql.salt), "since": utc(change.since), "run": change.run}


def _replicators(known: Members) -> Json:
    """The members of the link's group, and the last hand-over; null before the first."""
    now = known.assignment
    hand_over = {"at": utc(now.since), "before": now.before, "reason": now.reason} if now.before else None
    members = [
        {"host": each.host, "state": known.state(each), "since": utc(known.since(each)), "release": each.release}
        for each in known.members
    ]
    return {"members": members, "activations": now.number, "last_hand_over": hand_over}


def _state(record: StateRecord) -> Json:
    """A state; null as its topic stands for the link."""
    subject = {"topic": record.topic or None, "state": record.state, "since": utc(record.since)}
    return {**subject, "by": record.by, "why": record.why or None}


def _fault(fault: Fault) -> Json:
    return {"since": utc(fault.since), "reason": fault.reason}


def _transaction(transaction: OpenTransaction) -> Json:
    return {
        "first_offset": transaction.first_offset,
        "producer_id": transaction.producer_id if transaction.producer_id >= 0 else None,
        "transactional_id": transaction.transactional_id or None,
        "since": utc(transaction.began),
    }


_FORMS: Mapping[type, Callable[[Any], Json]] = {
    **dict.fromkeys((TopicStatus, PartitionStatus, LaneStatus, ClusterStatus, AuditStatus), _object),
    BlockingTransaction: lambda hold: {**_transaction(hold.transaction), "waiting": hold.waiting},
    Fault: _fault,
    Gap: _gap,
    Members: _replicators,
    Heartbeat: lambda heartbeat: {"at": utc(heartbeat.at), "way_ms": heartbeat.way},
    OpenTransaction: _transaction,
    Owner: _owner,
    SqlChange: _sql,
    StateRecord: _state,
}
"""The JSON of each class."""

_DERIVED: Mapping[str, Callable[[Any], Any]] = {
    "at": lambda snapshot: utc(snapshot.at),
    "troubles": problems,
    "problems": lambda snapshot: [{"subject": each, **_fault(it)} for each, it in sorted(snapshot.problems.items())],
    "problems_unknown": lambda snapshot: snapshot.problems_unknown or None,
    "remarks": remarks,
    "progress": lambda _: None,  # of earlier releases: a published key stays
    "excluded": lambda snapshot: [{"topic": topic, "reason": reason} for topic, reason in snapshot.excluded],
    "groups": lambda snapshot: [_group(group, snapshot.groups_unknown is None) for group in snapshot.groups],
    "behind_since": lambda partition: utc(partition.behind_since) if partition.behind_since else None,
    "remedies": lambda stop: [{"effect": each.effect, "command": each.command} for each in remedies(stop)],
}
"""The values of keys that are no field as it is."""


STALE_SECONDS = 30.0
"""Longest age of a snapshot that counts as current."""


def is_fresh(snapshot: Snapshot, now: int) -> bool:
    """True while a snapshot is new enough at ``now``, in milliseconds."""
    return now - snapshot.at <= STALE_SECONDS * 1000


def health(snapshot: Snapshot | None, now: int) -> tuple[bool, dict[str, object]]:
    """The health at ``now``: true when all is well, and the JSON object that names the problems."""
    if snapshot is None:
        return False, {"state": LinkState.UNKNOWN, "at": None, "troubles": ["there is no snapshot yet"]}
    if not is_fresh(snapshot, now):
        stale = f"no snapshot since {utc(snapshot.at)}"
        return False, {"state": LinkState.UNKNOWN, "at": utc(snapshot.at), "troubles": [stale]}
    answer: dict[str, object] = {"state": snapshot.state, "at": utc(snapshot.at), "troubles": problems(snapshot)}
    answer["stands_by"] = snapshot.stands_by
    return snapshot.state.well or (snapshot.stands_by and snapshot.state is not LinkState.UNKNOWN), answer
