"""The link as a connector of Kafka Connect, in the JSON of Connect's REST interface, so that consoles show it.

The connector is ``replicator-<source>``, and its tasks are the lanes. The source of the forms is Kafka's documentation,
"Kafka Connect, REST API"; an error is ``{"error_code", "message"}``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from appliance.link.model.copy_states import LINK, CopyState
from appliance.program import topic_option
from appliance.settings.variables import TABLE
from appliance.status.model.messages import problems, utc
from appliance.status.model.snapshot import LaneStatus, LinkState, Snapshot
from appliance.version import VERSION

CLASS = "kafka-cloud-replicator"
_TYPE = "source"
_TRACE_LINES = 50

Json = dict[str, Any]


def root(destination_id: str) -> Json:
    """The worker."""
    return {"version": VERSION, "commit": "", "kafka_cluster_id": destination_id}


def plugins() -> list[Json]:
    """The only plugin."""
    return [{"class": CLASS, "type": _TYPE, "version": VERSION}]


def validation() -> Json:
    """The plugin's settings that a console may change: none."""
    return {"name": CLASS, "error_count": 0, "groups": [], "configs": []}


def config(name: str, environment: Mapping[str, str], lanes: int) -> dict[str, str]:
    """The settings by their variables, as they may be shown."""
    settings = {
        variable.name: variable.shown(environment[variable.name])
        for variable in TABLE
        if environment.get(variable.name)
    }
    return {"name": name, "connector.class": CLASS, "tasks.max": str(max(1, lanes)), **settings}


def info(name: str, snapshot: Snapshot | None, environment: Mapping[str, str]) -> Json:
    """The connector."""
    lanes = len(snapshot.lanes) if snapshot else 0
    tasks = [{"connector": name, "task": lane} for lane in range(lanes)]
    return {"name": name, "config": config(name, environment, lanes), "tasks": tasks, "type": _TYPE}


def tasks(name: str, snapshot: Snapshot | None) -> list[Json]:
    """The lanes as tasks."""
    lanes = snapshot.lanes if snapshot else ()
    return [{"id": {"connector": name, "task": lane.lane}, "config": {"task.class": "lane"}} for lane in lanes]


def status(name: str, snapshot: Snapshot | None, replicator_unknown: str, *, old: bool = False) -> Json:
    """The states of the connector and of its tasks.

    ``replicator_unknown`` is why the replicator does not answer; ``old`` is true of a snapshot that is not current.
    """
    state, trace = _connector_state(snapshot, replicator_unknown)
    first = next((lane for lane in snapshot.lanes if lane.lane == 0), None) if snapshot else None
    if snapshot is not None and old and state != "UNASSIGNED":
        state, trace = "UNASSIGNED", f"unknown since {utc(snapshot.at)}: the clusters were not looked at since"
    return {
        "name": name,
        "connector": {"state": state, "worker_id": _worker(first)} | ({"trace": trace} if trace else {}),
        "tasks": task_states(snapshot, state, trace),
        "type": _TYPE,
    }


def task_states(snapshot: Snapshot | None, connector: str, why: str) -> list[Json]:
    """The state of each lane: failed if one of its partitions is stopped, or its topic, else as the connector."""
    stopped: dict[int | None, list[str]] = {}
    for topic in snapshot.topics if snapshot else ():
        for each in topic.partitions:
            if fault := each.stopped or topic.stopped:
                reason = f"{each.name}: stopped since {utc(fault.since)}: {fault.reason}"
                stopped.setdefault(each.lane, []).append(reason)
    for each, since in snapshot.stuck.items() if snapshot else ():
        stopped.setdefault(each.lane, []).append(f"{each.name}: nothing is copied since {utc(since)}")
    return [
        _task(lane.lane, _worker(lane), stopped.get(lane.lane, []), connector, why)
        for lane in (snapshot.lanes if snapshot else ())
    ]


def topics(name: str, snapshot: Snapshot | None) -> Json:
    """The topics that the connector writes: the copies."""
    return {name: {"topics": [topic.copy for topic in snapshot.topics if topic.active] if snapshot else []}}


def offsets(snapshot: Snapshot | None) -> Json:
    """The positions, as a source connector's offsets (KIP-875)."""
    return {
        "offsets": [
            {"partition": {"topic": p.topic, "partition": p.partition}, "offset": {"offset": p.next_offset}}
            for p in (snapshot.partitions if snapshot else ())
            if p.next_offset is not None
        ]
    }


def retries(snapshot: Snapshot | None, lane: str | None) -> Iterator[list[str]]:
    """The commands that try stopped partitions again, of one lane or of all; a paused topic stays paused."""
    for topic in snapshot.topics if snapshot else ():
        stopped = [partition for partition in topic.partitions if partition.stopped]
        if topic.state is not CopyState.ACTIVE or not stopped:
            continue
        if lane is None:
            yield ["resume", topic_option(topic.name)]
        for partition in stopped:
            if str(partition.lane) == lane:
                yield ["resume", topic_option(topic.name), f"--partition={partition.partition}"]


def error(code: int, message: str) -> Json:
    """An error."""
    return {"error_code": code, "message": message}


def _connector_state(snapshot: Snapshot | None, replicator_unknown: str) -> tuple[str, str]:
    if snapshot is None:
        return "UNASSIGNED", "nothing is known yet"
    if snapshot.stopped:
        return "FAILED", snapshot.stopped.reason
    if unknown := snapshot.destination.unknown or snapshot.source.unknown:
        return "UNASSIGNED", f"unknown since {utc(unknown.since)}: {unknown.reason}"
    link = next((record.state for record in snapshot.states if record.topic == LINK), CopyState.ACTIVE)
    if link is CopyState.PAUSED or (snapshot.state is LinkState.INACTIVE and link is CopyState.ACTIVE):
        return "PAUSED", ""
    if link is not CopyState.ACTIVE:
        return "STOPPED", f"the link is {link}"
    if snapshot.state is LinkState.NEVER_RUN:
        return "UNASSIGNED", "no replicator of the link has ever run"
    if replicator_unknown:
        return "UNASSIGNED", replicator_unknown
    if snapshot.state in (LinkState.UNKNOWN, LinkState.FAILING, LinkState.NOTHING_MATCHES):
        return "FAILED", "\n".join(problems(snapshot)[:_TRACE_LINES])
    return "RUNNING", ""


def _task(lane: int, worker: str, stopped: list[str], connector: str, why: str) -> Json:
    if not stopped or connector != "RUNNING":
        return {"id": lane, "state": connector, "worker_id": worker} | ({"trace": why} if why else {})
    return {"id": lane, "state": "FAILED", "worker_id": worker, "trace": "\n".join(stopped[:_TRACE_LINES])}


def _worker(lane: LaneStatus | None) -> str:
    owner = lane.owner if lane else None
    return f"{owner.host}:{owner.worker or owner.run}" if owner else ""
