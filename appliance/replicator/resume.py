"""The operator's word on partitions that have stopped: try again, or go on elsewhere and write the gap down.

The command takes the lane as a replicator would, with an epoch of its own, changes the positions, and leaves its name.
A replicator that runs finds its lane fenced by the operator and begins it anew; none has to be stopped or started.
"""

import socket
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from appliance.errors import SettingsError
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.offsets import Bound, list_offsets
from appliance.replicator.lane import Lane
from appliance.replicator.memory import OPERATOR, Gap, Owner
from appliance.replicator.naming import Naming
from appliance.replicator.plan import Replica, discover, lanes_of
from appliance.replicator.position import Position
from appliance.replicator.reach import destination_cluster, source_cluster
from appliance.replicator.recall import next_generation
from appliance.settings.values import Settings

RETRY = "retry"
_BOUNDS = {"earliest": Bound.START, "latest": Bound.STABLE_END}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which partitions go on, and where: ``start`` is ``retry``, ``earliest``, ``latest`` or an offset."""

    topic: str
    partition: int | None
    start: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """One partition that goes on; ``before`` is where it had stopped."""

    topic: str
    partition: int
    before: int
    next_offset: int


async def resume(settings: Settings, choice: Choice) -> list[Resumed]:
    """Change the positions of the partitions that are stopped, or of the chosen one whether it is or not.

    Raises:
        SettingsError: there is no such partition, or the choice is none.
        Unreachable, BrokerBusy, BrokerRefused, Fenced: nothing has been changed in the lane where that happened.
    """
    if choice.start not in (RETRY, *_BOUNDS) and not choice.start.isdecimal():
        raise SettingsError([f"--from {choice.start}: expected retry, earliest, latest or an offset"])
    naming = Naming.of(settings)
    async with source_cluster(settings) as source, destination_cluster(settings) as destination:
        found = discover(await source.metadata(None), await destination.metadata(None), naming)
        replicas = [r for r in found.replicas if r.source_topic == choice.topic]
        replicas = [r for r in replicas if choice.partition in (None, r.partition)]
        positions_topic = (await destination.metadata([naming.positions_topic])).topics.get(naming.positions_topic)
        if not replicas or positions_topic is None:
            raise SettingsError([f"--topic {choice.topic}: {naming.replicator} copies no such topic or partition"])
        generation = await next_generation(destination, naming.positions_topic, len(positions_topic.leaders)) - 1
        owner = Owner(OPERATOR, uuid.uuid4().hex, socket.gethostname(), _now(), generation)
        resumed = []
        for index, owned in lanes_of(replicas, len(positions_topic.leaders)).items():
            lane = Lane(index, destination, naming, owner, settings.engine.transaction_timeout)
            resumed += await _resume_lane(lane, owned, source, choice)
        return resumed


async def _resume_lane(lane: Lane, replicas: Iterable[Replica], source: KafkaCluster, choice: Choice) -> list[Resumed]:
    await lane.start()
    changed: dict[Replica, Position] = {}
    gaps: list[Gap] = []
    resumed: list[Resumed] = []
    for replica in replicas:
        held = lane.memory.positions.get((replica.source_topic, replica.partition))
        if held is None or not (held.stopped or choice.partition is not None):
            continue
        start = await _start(replica, held, source, choice)
        moved = held.go_on()
        if choice.start != RETRY:
            moved = moved.begin_again(replica.source_id, replica.destination_id, start)
            gaps.append(_gap(replica, held, start))
        changed[replica] = moved
        resumed.append(Resumed(replica.source_topic, replica.partition, held.next_offset, start))
    await lane.commit([], changed, gaps)
    return resumed


async def _start(replica: Replica, held: Position, source: KafkaCluster, choice: Choice) -> int:
    if choice.start == RETRY:
        return held.next_offset
    if choice.start.isdecimal():
        return int(choice.start)
    key = (replica.source_topic, replica.partition)
    metadata = await source.metadata([replica.source_topic])
    return (await list_offsets(source, metadata, [key], _BOUNDS[choice.start]))[key]


def _gap(replica: Replica, held: Position, start: int) -> Gap:
    spliced = held.source_id == replica.source_id and start >= held.next_offset
    return Gap(
        (replica.source_topic, replica.partition),
        held.source_id,
        held.next_offset,
        start if spliced else -1,
        f"the operator went on from offset {start}",
        _now(),
    )


def _now() -> int:
    return time.time_ns() // 1_000_000
