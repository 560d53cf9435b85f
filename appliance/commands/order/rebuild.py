"""``appliance order rebuild``: a T-global that is no prefix of the order is made anew from the other clusters'.

1. What it alone has shown is copied into a topic of its own, ``T-global.aside-EPOCH``.
2. T-global and the hidden log are deleted, by their ids.
3. The lanes forget them, each in one transaction, and keep their promises. The process makes both logs again.

After a kill anywhere, the same command continues. A partition votes again once it has what it may have acknowledged.
"""

import argparse
import asyncio
import dataclasses
import json
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from appliance.clock import now_ms
from appliance.commands.order.setting_aside import counted_records, set_aside
from appliance.commands.run.operation import agree
from appliance.errors import ApplianceError, NothingToDo
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.topics import delete_topics
from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.link.client.retry import is_passing, retry_while_busy
from appliance.link.model.checkpoint import OPERATOR, Owner
from appliance.link.model.layout import Layout
from appliance.link.model.order import OrderRecord, Origin
from appliance.link.model.topic_choice import add_topic_options, among
from appliance.order.handle import OrderHandle
from appliance.order.lane import OrderLane
from appliance.order.model.cluster_facts import ClusterFacts, compose
from appliance.order.model.elections import Facts, promise
from appliance.order.model.rebuilding import (
    NOTHING_STOPPED,
    REBUILDING,
    Aside,
    Maps,
    begun_again,
    is_stopped,
    lost_beginning,
    mapped,
    refusal,
    shared,
)
from appliance.order.names import aside_topic, hidden_topic
from appliance.output import say, say_json
from appliance.runtime.command import Command, add_json, until_stopped, with_settings_by
from appliance.settings.env_file import read_order
from appliance.settings.order_values import OrderSettings
from appliance.settings.role import Role


@dataclass(frozen=True, slots=True)
class _Plan:
    """The rebuild of one topic: the ``logs`` to delete, by id, and the partitions of T by the ``lanes`` to change."""

    topic: str
    aside: str
    asides: Sequence[Aside]
    logs: Mapping[str, uuid.UUID]
    lanes: Mapping[int, Mapping[Partition, Facts]]

    def __str__(self) -> str:
        if not self.asides:
            return f"{self.topic}: T-global is made anew, and nothing of it is set aside"
        records = [each.records for each in self.asides]
        unknown = sum(number is None for number in records)
        text = f"{sum(number or 0 for number in records):,} records that it alone has shown"
        if unknown:
            text += f", and all records of {unknown} partitions, of which no map of offsets says who else has them"
        return f"{self.topic}: T-global is made anew; set aside in {self.aside}: {text}"

    def document(self) -> Mapping[str, object]:
        """The plan for JSON."""
        asides = [dataclasses.asdict(each) for each in self.asides]
        return {"topic": self.topic, "aside": self.aside, "partitions": asides, "lanes": sorted(self.lanes)}


async def rebuild(settings: OrderSettings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    """Make the T-globals anew that are stopped, or that of a topic."""
    async with OrderHandle.open(settings) as order:
        own = settings.cluster
        plans = await _plans(order, own, parsed.topic, gap=parsed.gap)
        if parsed.dry_run:
            _tell(plans, "would rebuild", as_json=parsed.json)
            return 0
        if plans and not parsed.yes:
            await agree("; ".join(map(str, plans)))
        for plan in plans:
            await _carry_out(order, own, settings.engine.transaction_timeout, plan)
        _tell(plans, "rebuilt", as_json=parsed.json)
    return 0


def _tell(plans: Sequence[_Plan], done: str, *, as_json: bool) -> None:
    if as_json:
        say_json(json.dumps([plan.document() for plan in plans], indent=2))
    else:
        say(*(f"{done} {plan}" for plan in plans))
        say("the process beside this cluster copies what the others have" if plans else "all is being rebuilt already")


async def _plans(order: OrderHandle, own: str, topic: str, *, gap: bool) -> list[_Plan]:
    """The plans of all topics to rebuild; none if that was done already, and the process copies.

    With a ``gap`` they may begin after the records that nobody else has any more.

    Raises:
        ApplianceError: it cannot be done now.
    """
    facts = await order.facts()
    mine, view = facts[own], compose(facts, now_ms(), single=order.single)
    if isinstance(mine, str):
        raise ApplianceError(f"{own} cannot be read: {mine}; nothing was changed")
    stopped = {key.topic for key, record in mine.orders.items() if is_stopped(record)}
    topics = set(among(topic, {each.topic for each in view.partitions}, "no such topic is in the order"))
    topics = topics if topic else stopped
    keys = {Partition(each.topic, each.partition) for each in view.partitions if each.topic in topics}
    if not topic and not keys and any(record.stopped == REBUILDING for record in mine.orders.values()):
        return []
    read = {name: each for name, each in facts.items() if isinstance(each, ClusterFacts)}
    others = [each for name, each in read.items() if name != own]
    if reason := refusal(own, keys, view) or ("" if gap else lost_beginning(keys, others, order.naming)):
        raise (NothingToDo if reason == NOTHING_STOPPED else ApplianceError)(f"{reason}; nothing was changed")
    for key in () if gap else sorted(keys):
        await _require_maps(order, key, own, read)
    return [await _Planning(order, own, read, name).plan() for name in sorted({key.topic for key in keys})]


async def _require_maps(order: OrderHandle, key: Partition, own: str, facts: Mapping[str, ClusterFacts]) -> None:
    """Check that some other cluster knows where all its records come from; else nobody could copy them.

    Raises:
        ApplianceError: none does.
    """
    others = {name: each.orders.get(key, OrderRecord()) for name, each in facts.items() if name != own}
    ranks = {name: record.rank for name, record in others.items() if record.rank and not record.stopped}
    for name, rank in ranks.items():
        if mapped(await _maps(order, name, key)) >= rank:
            return
    if ranks:
        text = f"no other cluster knows where all records of {key} come from: an origin was made anew"
        raise ApplianceError(f"{text}; nothing was changed")


async def _maps(order: OrderHandle, cluster: str, key: Partition) -> Maps:
    maps, sources = await order.maps(cluster, *key)
    return {Origin(each.topic.partition(":")[0], each.number): maps.segments(each) for each in sources}


@dataclass(frozen=True, slots=True)
class _Planning:
    """The planning of one topic's rebuild, by the facts of the clusters that were read."""

    order: OrderHandle
    own: str
    facts: Mapping[str, ClusterFacts]
    topic: str

    async def plan(self) -> _Plan:
        """Look at the logs, and compare what they hold."""
        mine, naming = self.facts[self.own], self.order.naming
        shown, layout = naming.destination(self.topic), Layout(len(mine.promises))
        names = [shown, hidden_topic(self.topic)]
        topics = (await self.order.clusters[self.own].metadata(names)).topics
        there = topics[shown].id if shown in topics else None
        keys = [key for key in self._keys() if key.topic == self.topic]
        written = [key for key in keys if self._is_written(self._part(key))]
        is_old = there is not None and any(not is_another(self._part(key).global_id, there) for key in written)
        lanes = {layout.lane_of(*key) for key in (keys if is_old else written) if is_old or self._is_gone(key, there)}
        homes: dict[int, dict[Partition, Facts]] = {}
        for key in keys:
            if (lane := layout.lane_of(*key)) in lanes:
                homes.setdefault(lane, {})[key] = self._home(lane, key)
        numbers = [home.promise.epoch.number for each in homes.values() for home in each.values() if home.promise]
        aside = aside_topic(shown, max(numbers, default=0))
        asides = [await self._aside(key, shown) for key in written if is_old and is_stopped(self._part(key))]
        # The hidden log is of no use without T-global, and would be taken for a stranger's.
        logs = {name: topics[name].id for name in names if name in topics and (is_old if name == shown else homes)}
        return _Plan(self.topic, aside, [each for each in asides if each.start < each.end], logs, homes)

    def _keys(self) -> list[Partition]:
        return sorted({key for each in self.facts.values() for key in each.orders})

    def _part(self, key: Partition) -> OrderRecord:
        return self.facts[self.own].orders.get(key, OrderRecord())

    @staticmethod
    def _is_written(record: OrderRecord) -> bool:
        """True if T-global has, or may have, records of a partition that is not being rebuilt already."""
        return record.stopped != REBUILDING and (record.rank > 0 or bool(record.stopped))

    def _is_gone(self, key: Partition, there: uuid.UUID | None) -> bool:
        return there is None or is_another(self._part(key).global_id, there)

    def _home(self, lane: int, key: Partition) -> Facts:
        """The facts of the home of the newest epoch."""
        promises = [each.promises[lane] for each in self.facts.values() if lane < len(each.promises)]
        newest = max(each.epoch for each in promises if each is not None)
        home = self.facts[newest.home]
        return Facts(home.promises[lane], home.orders[key])

    async def _aside(self, key: Partition, shown: str) -> Aside:
        """The records of a T-global from the first one on that is another one elsewhere."""
        cluster, log, record = self.order.clusters[self.own], Partition(shown, key.number), self._part(key)
        others = {
            name: each.orders[key]
            for name, each in self.facts.items()
            if name != self.own and key in each.orders and not each.orders[key].stopped
        }
        longest = max(others, key=lambda name: others[name].rank)
        same = shared(await _maps(self.order, self.own, key), await _maps(self.order, longest, key))
        is_known = record.end is not None and same.own == record.rank and same.theirs >= others[longest].rank
        metadata = await cluster.metadata([shown])
        start = (await list_offsets(cluster, metadata, [log], Bound.START))[log]
        end = (await list_offsets(cluster, metadata, [log], Bound.STABLE_END))[log]
        following = same.offset if same.offset is not None else record.end.offset if record.end else 0
        begin = max(start, following if is_known else 0)
        records = await counted_records(cluster, log, begin, end)
        return Aside(key.number, begin, end if records else begin, records if is_known else None)


async def _carry_out(order: OrderHandle, own: str, timeout: float, plan: _Plan) -> None:
    cluster, shown = order.clusters[own], order.naming.destination(plan.topic)
    if plan.asides:
        await retry_while_busy(lambda: set_aside(cluster, shown, plan.aside, plan.asides, timeout))
    await delete_topics(cluster, plan.logs)
    owner = Owner(OPERATOR, uuid.uuid4().hex, socket.gethostname(), now_ms())
    for index, homes in plan.lanes.items():
        lane = OrderLane(index, cluster, order.naming, owner, timeout)
        await retry_while_busy(partial(_begin_again, lane, homes), is_passing)


async def _begin_again(lane: OrderLane, homes: Mapping[Partition, Facts]) -> None:
    """Fence a lane, and write that it has nothing of these partitions."""
    lane = dataclasses.replace(lane)
    await lane.start()
    now, before = now_ms(), lane.promise
    newest = next(home.promise for home in homes.values() if home.promise is not None)
    if before is not None and before.epoch > newest.epoch:
        raise ApplianceError(f"epoch {before.epoch} was promised meanwhile: run this again")
    kept = before if before is not None and before.epoch == newest.epoch else promise(before, newest, now)
    await lane.begin_again({key: begun_again(home, lane.record(key)) for key, home in homes.items()}, kept, now)


def _add_options(command: argparse.ArgumentParser) -> None:
    add_topic_options(command, "only these topics, even if they are not stopped; repeatable")
    gap = "even if nobody else has its first records any more: it begins after them"
    command.add_argument("--gap", action="store_true", help=gap)
    command.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")
    add_json(command)
    command.add_argument("--yes", action="store_true", help="do not ask")


REBUILD = Command(
    "Makes T-global of this VM's cluster anew from the others', where it is stopped: its cluster was declared lost "
    "while it was alone, or T-global or its positions were deleted, shortened or written to. What it alone has shown "
    "is kept in T-global.aside-EPOCH. Killed anywhere, the same command again finishes it.",
    until_stopped(
        with_settings_by(read_order, Role.REPLICATOR, rebuild), "stopped: run the same command again to finish it"
    ),
    _add_options,
)
