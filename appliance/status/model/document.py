"""The snapshot as a JSON object: everything, null if unknown, times as ISO 8601."""

from appliance.groups.model.group_plan import GroupPlan, PartitionPlan
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.link.model.checkpoint import Gap, Owner
from appliance.link.model.copy_states import StateRecord
from appliance.link.model.link_sql import SqlChange
from appliance.link.model.problems import Fault
from appliance.status.model.messages import problems, remarks, remedies, utc
from appliance.status.model.snapshot import (
    AuditStatus,
    ClusterStatus,
    LaneStatus,
    LinkState,
    PartitionStatus,
    Snapshot,
    TopicStatus,
)

Json = dict[str, object]


def document(snapshot: Snapshot) -> Json:
    """The JSON object of a snapshot."""
    heartbeat = snapshot.heartbeat
    return {
        "replicator": snapshot.replicator,
        "at": utc(snapshot.at),
        "state": snapshot.state,
        "stopped": _fault(snapshot.stopped),
        "troubles": problems(snapshot),
        "problems": [{"subject": subject, **_told(fault)} for subject, fault in sorted(snapshot.problems.items())],
        "problems_unknown": snapshot.problems_unknown or None,
        "remarks": remarks(snapshot),
        "source": _cluster(snapshot.source),
        "destination": _cluster(snapshot.destination),
        "max_bytes_per_second": snapshot.max_bytes_per_second,
        "heartbeat": {"at": utc(heartbeat.at), "way_ms": heartbeat.way} if heartbeat else None,
        "sql": _sql(snapshot.sql) if snapshot.sql else None,
        "audit": _audit(snapshot.audit) if snapshot.audit else None,
        "states": [_state(record) for record in snapshot.states],
        "progress": None,  # of earlier releases: a published key stays
        "lanes": [_lane(lane) for lane in snapshot.lanes],
        "topics": [_topic(topic) for topic in snapshot.topics],
        "excluded": [{"topic": topic, "reason": reason} for topic, reason in snapshot.excluded],
        "groups_unknown": _fault(snapshot.groups_unknown),
        "groups": [_group(group, snapshot.groups_unknown is None) for group in snapshot.groups],
    }


def _cluster(cluster: ClusterStatus) -> Json:
    return {"cluster": cluster.cluster_id, "unknown": _fault(cluster.unknown)}


def _sql(change: SqlChange) -> Json:
    """The link's SQL; digest and text are null if records are copied as they are, again."""
    sql = {"number": change.sql.number, "digest": change.sql.digest or None, "text": change.sql.text or None}
    return {**sql, "salted": bool(change.sql.salt), "since": utc(change.since), "run": change.run}


def _audit(audit: AuditStatus) -> Json:
    return {"path": audit.path, "lag_seconds": audit.lag_seconds, "problem": _fault(audit.problem)}


def _state(record: StateRecord) -> Json:
    """A state; null as its topic stands for the link."""
    of = {"topic": record.topic or None, "state": record.state, "since": utc(record.since)}
    return {**of, "by": record.by, "why": record.why or None}


def _fault(fault: Fault | None) -> Json | None:
    return _told(fault) if fault else None


def _told(fault: Fault) -> Json:
    return {"since": utc(fault.since), "reason": fault.reason}


def _lane(lane: LaneStatus) -> Json:
    held = _transaction(lane.held) if lane.held else None
    return {"lane": lane.lane, "owner": _owner(lane.owner) if lane.owner else None, "held": held}


def _owner(owner: Owner) -> Json:
    return {"run": owner.run, "worker": owner.worker, "host": owner.host, "since": utc(owner.since)}


def _topic(topic: TopicStatus) -> Json:
    return {
        "topic": topic.name,
        "copy": topic.copy,
        "active": topic.active,
        "state": topic.state,
        "stopped": _fault(topic.stopped),
        "remedies": _remedies(topic),
        "copied": topic.copied,
        "rate": topic.rate,
        "lag_records": topic.lag_records,
        "lag_seconds": topic.lag_seconds,
        "left_out": list(topic.left_out),
        "partitions": [_partition(partition) for partition in topic.partitions],
    }


def _partition(partition: PartitionStatus) -> Json:
    held = partition.held
    return {
        "partition": partition.partition,
        "lane": partition.lane,
        "next_offset": partition.next_offset,
        "end_offset": partition.end_offset,
        "copied": partition.copied,
        "bytes": partition.bytes,
        "rate": partition.rate,
        "lag_records": partition.lag_records,
        "lag_seconds": partition.lag_seconds,
        "behind_since": utc(partition.behind_since) if partition.behind_since else None,
        "latency_ms": partition.latency_ms,
        "stopped": _fault(partition.stopped),
        "unknown": _fault(partition.unknown),
        "remedies": _remedies(partition),
        "held": {**_transaction(held.transaction), "waiting": held.waiting} if held else None,
        "gaps": None if partition.gaps is None else [_gap(gap) for gap in partition.gaps],
        "dropped": partition.dropped,
        "written_by_links": partition.written,
        "filtered": partition.filtered,
        "dead_letters": partition.dead_letters,
        "lost_at_source": partition.lost_at_source,
    }


def _remedies(subject: TopicStatus | PartitionStatus) -> list[Json]:
    return [{"effect": each.effect, "command": each.command} for each in remedies(subject)]


def _transaction(transaction: OpenTransaction) -> Json:
    return {
        "first_offset": transaction.first_offset,
        "producer_id": transaction.producer_id if transaction.producer_id >= 0 else None,
        "transactional_id": transaction.transactional_id or None,
        "since": utc(transaction.began),
    }


def _gap(gap: Gap) -> Json:
    return {
        "first": gap.first,
        "next": gap.next if gap.next >= 0 else None,
        "cause": gap.cause,
        "found": utc(gap.found),
    }


def _group(group: GroupPlan, known: bool) -> Json:
    """A group as last seen; its lag only if that is current."""
    return {
        "group": group.name,
        "kind": group.kind,
        "state": group.state,
        "lag": group.lag if known else None,
        "refused": group.refused or None,
        "partitions": [_offsets(partition, known) for partition in group.partitions],
    }


def _offsets(partition: PartitionPlan, known: bool) -> Json:
    return {
        "topic": partition.source[0],
        "partition": partition.source[1],
        "source_offset": partition.upstream.offset,
        "translated": partition.target.offset if partition.target else None,
        "destination_offset": partition.committed.offset if partition.committed else None,
        "lag": partition.lag if known else None,
        "state": partition.state,
        "reason": partition.reason or None,
    }


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
    return snapshot.state.well, answer
