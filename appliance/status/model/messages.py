"""A snapshot in sentences, one line each: problems, and remarks."""

from collections.abc import Iterator

from appliance import timestamps
from appliance.groups.model.newest_groups import sentences
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.link.model.checkpoint import Gap
from appliance.link.model.copy_states import CopyState
from appliance.link.model.problems import Fault, has_a_view, is_beside
from appliance.link.model.stops import Remedy, Stop, StopKind
from appliance.listing import counted, number, some
from appliance.status.model.snapshot import ClusterStatus, LinkState, Snapshot
from appliance.status.model.state_words import replicators
from appliance.status.model.topic_status import BlockingTransaction, PartitionStatus, TopicStatus

_NAMED = 5
_NOTHING_MATCHES = (
    "matches no topic that the source shows: correct it, make a topic, or grant SOURCE_API_KEY Describe on the topics"
)

Subject = ClusterStatus | Snapshot | TopicStatus | PartitionStatus
"""The subject of a problem; a snapshot stands for the link."""


def problems(snapshot: Snapshot) -> list[str]:
    """The problems that need an operator."""
    return [problem for _, problem in problems_by_subject(snapshot)]


def remarks(snapshot: Snapshot) -> list[str]:
    """Remarks that are not problems: open transactions, gaps, missing topics, settings left out."""
    return list(_remarks(snapshot))


def problems_by_subject(snapshot: Snapshot) -> Iterator[tuple[Subject, str]]:
    """The same problems, each with its subject."""
    for cluster in (snapshot.source, snapshot.destination):
        if cluster.unknown:
            since = utc(cluster.unknown.since)
            yield cluster, f"{cluster_name(cluster)}: unknown since {since}: {cluster.unknown.reason}"
    if snapshot.stopped:
        yield snapshot, f"{snapshot.replicator}: stopped since {utc(snapshot.stopped.since)}: {snapshot.stopped.reason}"
    both_answer = not (snapshot.source.unknown or snapshot.destination.unknown)
    if both_answer and not any(lane.owner for lane in snapshot.lanes):
        yield snapshot, f"{snapshot.replicator}: {LinkState.NEVER_RUN}: start it with `appliance replicate`"
    for topic in snapshot.topics:
        if topic.stopped:
            yield topic, f"{topic.name}: not copied since {utc(topic.stopped.since)}: {topic.stopped.reason}"
        for partition in topic.partitions:
            if partition.unknown and both_answer:
                yield partition, _fault(partition, LinkState.UNKNOWN, partition.unknown)
            if partition.stopped:
                yield partition, _fault(partition, LinkState.STOPPED, partition.stopped)
    for partition, began in snapshot.stuck.items():
        yield partition, _fault(partition, LinkState.FAILING, Fault(_why(partition, snapshot), began))
    for subject, fault in snapshot.failing.items():
        yield snapshot, f"{subject}: {LinkState.FAILING} since {utc(fault.since)}: {fault.reason}"
    if snapshot.state is LinkState.NOTHING_MATCHES:
        yield snapshot, f"{snapshot.replicator}: {snapshot.chosen_by} {_NOTHING_MATCHES}"
    if snapshot.standby_missing and both_answer:
        present = replicators(snapshot.replicators, snapshot.replicators_unknown)
        yield snapshot, f"standby: REPLICATOR_STANDBYS={snapshot.standbys_wanted}: {present}"


def _why(partition: PartitionStatus, snapshot: Snapshot) -> str:
    """The most likely reason that nothing is copied."""
    faults = snapshot.problems
    near = (partition.name, f"lane {partition.lane}", f"lane {partition.lane} admission", "executors", "spark")
    others = [subject for subject in faults if not (has_a_view(subject) or is_beside(subject))]
    subject = next((each for each in (*near, *others) if each in faults), "")
    reason = f"{subject}: {faults[subject].reason}" if subject else snapshot.problems_unknown or "for no known reason"
    return f"nothing is copied of {counted(partition.lag_records or 0, 'offset')}: {reason}"


def remedies(subject: Subject) -> tuple[Remedy, ...]:
    """The commands that end a stop."""
    match subject:
        case TopicStatus(stopped=Fault(reason=reason)):
            return Stop(reason, subject.name).remedies
        case PartitionStatus(stopped=Fault(reason=reason)) | PartitionStatus(unknown=Fault(reason=reason)) if (
            subject.stopped or Stop(reason, subject.topic).kind is StopKind.RECREATED
        ):
            return Stop(reason, subject.topic, subject.partition, subject.next_offset).remedies
        case _:
            return ()


def _fault(partition: PartitionStatus, state: LinkState, fault: Fault) -> str:
    reason = fault.reason.removeprefix(f"{partition.name} ")
    return f"{partition.name}: {state} since {utc(fault.since)}: {reason}"


def _remarks(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.previous_secret:
        yield "SHARED_SECRET_PREVIOUS is set: remove it as soon as the source VM has the new SHARED_SECRET"
    for record in snapshot.states:
        if record.state is not CopyState.ACTIVE:
            why = f": {record.why}" if record.why else ""
            yield f"{record.subject}: {record.state} since {utc(record.since)} by {record.by}{why}"
    if snapshot.audit and snapshot.audit.problem:
        problem = snapshot.audit.problem
        yield f"audit table: not written since {utc(problem.since)}: {problem.reason}"
    if snapshot.problems_unknown:
        yield f"problems of the running replicator: unknown: {snapshot.problems_unknown}"
    for subject, fault in snapshot.passing.items():
        yield f"{subject}: since {utc(fault.since)}: {fault.reason}"
    for lane in snapshot.lanes:
        if lane.held:
            yield f"lane {lane.lane}: its positions wait for {transaction_name(lane.held)}"
    for topic in snapshot.topics:
        yield from _topic_remarks(topic)
    yield from _excluded(snapshot)
    if snapshot.groups_unknown:
        yield f"groups: unknown since {utc(snapshot.groups_unknown.since)}: {snapshot.groups_unknown.reason}"
    yield from sentences(snapshot.groups).values()


def _excluded(snapshot: Snapshot) -> Iterator[str]:
    """The topics that match by name and are not copied, a line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for topic, reason in snapshot.excluded:
        by_reason.setdefault(reason, []).append(topic)
    for reason, topics in by_reason.items():
        yield f"not copied, {reason}: {some(topics, _NAMED)}"


def _topic_remarks(topic: TopicStatus) -> Iterator[str]:
    if not topic.active:
        yield f"{topic.name}: no longer at the source, or no longer among the topics to copy"
    if topic.left_out:
        yield f"{topic.name}: {topic.copy} is without {', '.join(topic.left_out)}, which the destination does not take"
    for partition in topic.partitions:
        comparable = partition.lag_records == 0 and None not in (partition.dropped, partition.written)
        if comparable and partition.dropped != partition.written:
            yield (
                f"{partition.name}: links count {partition.written:,} records that they wrote there, and this one has "
                f"dropped {partition.dropped:,}: these are equal unless one was reset, began later or was compacted"
            )
        if partition.held:
            yield f"{partition.name}: {held_by(partition.held)}"
        yield from (f"{partition.name}: {_gap(gap)}" for gap in partition.gaps or ())


def held_by(hold: BlockingTransaction) -> str:
    """The offsets that wait, and the transaction that they wait for."""
    first = number(hold.transaction.first_offset)
    return f"{counted(hold.waiting, 'offset')} from {first} on wait for {transaction_name(hold.transaction)}"


def _gap(gap: Gap) -> str:
    if gap.next == gap.first:
        return f"gap, found {utc(gap.found)}: {gap.cause}"
    first = number(gap.first)
    offsets = f"offsets {first} to {gap.next - 1:,}" if gap.next >= 0 else f"offset {first} and what followed it"
    return f"gap, found {utc(gap.found)}: {offsets} will never be copied: {gap.cause}"


def transaction_name(transaction: OpenTransaction) -> str:
    """The transaction's owner, if known, and the time of its beginning."""
    producer = f"producer id {transaction.producer_id}"
    if transaction.transactional_id:
        owner = f" of {transaction.transactional_id} ({producer})"
    else:
        owner = f" of {producer}" if transaction.producer_id >= 0 else ""
    return f"a transaction{owner} that is open since {utc(transaction.began)}"


def cluster_name(cluster: ClusterStatus) -> str:
    """``source cluster orange``."""
    return f"{cluster.side} cluster {cluster.cluster_id}"


def utc(milliseconds: int) -> str:
    """A time in milliseconds as ISO 8601, in UTC: ``2026-11-21T02:45:51.123Z``."""
    return timestamps.utc(milliseconds / 1000)
