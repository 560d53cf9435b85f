"""Lanes over tasks by their load, and the assignments of these. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from appliance.driver.model.link_facts import Established
from appliance.engine.control.assignment import Assignment
from appliance.engine.read.buffer_budget import share
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.layout import Layout
from appliance.link.model.replicas import Replica, lanes_by_task, lanes_of


def lane_loads(layout: Layout, loads: Mapping[Partition, float]) -> list[float]:
    """The load of each lane."""
    totals = [0.0] * layout.lanes
    for partition, load in loads.items():
        totals[layout.lane_of(*partition)] += load
    return totals


def tasks_by_load(loads: Sequence[float], tasks: int) -> list[int]:
    """The task of each lane, given the lanes' loads: each goes to the least loaded task, the most loaded lane first."""
    totals, counts = [0.0] * tasks, [0] * tasks
    task_of = [0] * len(loads)
    for lane in sorted(range(len(loads)), key=lambda lane: -loads[lane]):
        task = min(range(tasks), key=lambda task: (totals[task], counts[task]))
        task_of[lane] = task
        totals[task] += loads[lane]
        counts[task] += 1
    return task_of


def assignments(
    link: Established, replicas: Iterable[Replica], tasks: int, task_of: Sequence[int], bytes_per_second: int
) -> list[Assignment]:
    """The work of each task, given the task of each lane; those with lanes share the bound."""
    parts = lanes_by_task(lanes_of(replicas, link.layout), tasks, task_of)
    each = share(bytes_per_second, sum(map(bool, parts)))
    work = []
    for lanes in parts:
        topics = {replica.source_topic for replicas in lanes.values() for replica in replicas}
        starts = {name: link.starts[name] for name in sorted(topics & link.starts.keys())}
        work.append(Assignment(lanes, starts, each, link.producers, link.layout.number, link.sql))
    return work
