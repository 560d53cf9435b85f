"""The operator: runs commands, each as a process of its own, and does by hand what log lines ask for."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any
from unittest import mock

from appliance.commands import positions_adoption
from appliance.commands import resumption as resume
from appliance.commands.lanes import lanes
from appliance.commands.model.position_change import Place
from appliance.commands.model.report import Report
from appliance.commands.model.reset_report import ResetReport
from appliance.commands.pause import set_paused
from appliance.commands.promotion import failover, promote
from appliance.commands.reset import reset
from appliance.commands.resumption import RETRY, Choice
from appliance.commands.run import operation
from appliance.commands.run.operation import Operation
from appliance.commands.run.runner import Plan
from appliance.errors import ApplianceError, LinkRefused
from appliance.groups.model.newest_groups import NewestGroups
from appliance.kafka.protocol.metadata import Partition
from appliance.link import handle
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.copy_states import CopyEvent
from appliance.settings.values import Settings, Side
from appliance.status.watcher import Watcher
from tests.simulation.brokers import Brokers
from tests.simulation.client import Fates, SimulatedCluster
from tests.simulation.invariants import Violation
from tests.simulation.link import Link
from tests.simulation.looks import Looks
from tests.simulation.loop import Life
from tests.support.operating import run_command

_AGAIN_AFTER = 1.0
_STARTED_WITHIN = 4.0
_PROMOTED_WITHIN = 0.5
_WATCHED_EVERY = 0.2
_ONLY_PLANNED = 0.2
_PROMOTIONS: tuple[object, ...] = (failover, promote)

_TO_ACTIVE = (CopyEvent.RESUME, CopyEvent.GIVEN_UP, CopyEvent.FAIL_BACK, CopyEvent.RETURNED)
"""The events by which every state becomes active."""


@contextlib.contextmanager
def simulated(source: Brokers, destination: Brokers, fates: Fates) -> Iterator[None]:
    """Within the block the commands reach these clusters."""

    def opened(brokers: Brokers, side: Side) -> Callable[[Settings], contextlib.AbstractAsyncContextManager[object]]:
        @contextlib.asynccontextmanager
        async def cluster(_: Settings) -> AsyncIterator[SimulatedCluster]:
            yield SimulatedCluster(brokers, side, fates.loop.life, fates)

        return cluster

    at_source, at_destination = opened(source, Side.SOURCE), opened(destination, Side.DESTINATION)
    clusters = {"source_cluster": at_source, "destination_cluster": at_destination}
    with mock.patch.multiple(handle, **clusters):
        yield


class Operator:
    """Runs commands, each in a process of its own."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._planned = 0
        self._running: list[tuple[Life, asyncio.Task[None]]] = []

    @property
    def is_busy(self) -> bool:
        """True while a command runs, or is planned."""
        return self._planned > 0 or any(life.alive and not task.done() for life, task in self._running)

    def plan(self, delay: float, act: Callable[[], None]) -> None:
        """Have the operator do something then, which is to be awaited."""
        self._planned += 1

        def do() -> None:
            self._planned -= 1
            act()

        self._link.at(self._link.loop.time() + delay, do)

    def check(self) -> None:
        """Raise what a command has ended by, unless that is an error for the operator."""
        for life, task in self._running:
            if life.alive and task.done() and (error := task.exception()):
                raise Violation(f"{life.name} ended by {error!r}") from error

    def kill(self) -> None:
        """Cut off what runs, as by SIGKILL."""
        for life, _ in self._running:
            life.alive = False

    def resume(self) -> None:
        """Choose for a topic, or one partition of it, wherever that is."""
        link = self._link
        topic = link.chance.choice(list(link.source.topics.values()))
        log = link.chance.choice(topic.logs)
        number = log.number if link.chance.random() < 0.5 else None
        offset = link.chance.randint(log.start, log.end)
        start = link.chance.choice((RETRY, RETRY, "earliest", "latest", str(offset)))
        link.invariants.named.add(Partition(topic.name, number))
        choice = Choice(topic.name, number, start)
        self._begin(f"resume {choice}", resume.resume(link.settings, choice, self._told))

    def resume_stopped(self) -> None:
        """Have each partition go on that is stopped."""
        link = self._link
        choices: list[Choice] = []
        held = link.invariants.positions.items()
        stopped = {partition for partition, position in held if position.stopped} | link.invariants.unknown
        for topic, number in sorted(stopped & link.invariants.current.keys()):
            choice = Choice(topic, number, link.chance.choice(("earliest", "latest")))
            link.invariants.named.add(Partition(topic, number))
            choices.append(choice)
        self._begin(f"resume {choices}", self._resume_each(choices))

    async def _resume_each(self, choices: Sequence[Choice]) -> None:
        for choice in choices:
            try:
                await resume.resume(self._link.settings, choice, self._told)
            except ApplianceError as error:
                self._told(str(error))

    def adopt(self) -> None:
        """Have the link go on with its positions topic as it is now."""
        self._link.invariants.may_adopt = True
        self._begin("adopt positions", self._adopt())

    async def _adopt(self) -> None:
        while True:
            try:
                await positions_adoption.adopt_positions(self._link.settings, self._told)
                break
            except ApplianceError as error:
                self._told(str(error))
            await asyncio.sleep(_AGAIN_AFTER)
        self._link.damaged, self._link.may_stop = False, True
        await asyncio.sleep(_STARTED_WITHIN)
        self.resume_stopped()

    def change_state(self) -> None:
        """Run a command that changes the states of the link, or of one topic."""
        link = self._link
        topic = link.chance.choice(("", *link.source.topics))
        commands = {
            "pause": lambda running: set_paused(running, CopyEvent.PAUSE),
            "resume": lambda running: set_paused(running, CopyEvent.RESUME),
            "fail over": failover,
            "promote": promote,
            "reset": self._reset,
            **{event.value: functools.partial(self._apply, event) for event in _TO_ACTIVE[1:]},
        }
        name = link.chance.choice(list(commands))
        self._begin(f"{name} {topic}", self._change(commands[name], topic))

    def change_lanes(self) -> None:
        """Give the link another number of lanes, or place its partitions by load."""
        count = self._link.chance.choice((1, 2, 2, 3, 4))
        self._begin(f"lanes {count}", self._change_lanes(count))

    def settle_lanes(self) -> None:
        """End what a killed change of lanes has left."""
        self._begin("settle lanes", self._settle_lanes(self._link.chance.choice((1, 2, 3))))

    async def _change_lanes(self, count: int) -> None:
        balance = self._link.chance.random() < 0.5
        async with operation.operation(self._link.settings, operation.Choice(yes=True), self._told) as running:
            await run_command(running, lanes, count, balance=balance, sample=0)

    async def _settle_lanes(self, count: int) -> None:
        while True:
            try:
                return await self._change_lanes(count)
            except ApplianceError as error:
                self._told(str(error))
                if self._link.damaged or not self._link.invariants.is_changing:
                    return None
            await asyncio.sleep(_AGAIN_AFTER)

    def settle_states(self) -> None:
        """Have every lane told the same; by chance all is copied again, or nothing is that can be paused."""
        events = self._link.chance.choice(((*_TO_ACTIVE, CopyEvent.POSITIONED), (CopyEvent.PAUSE,)))
        self._begin(f"settle {[event.value for event in events]}", self._settle(events))

    async def _change(self, command: Callable[[Operation], Awaitable[Plan[Any]]], topic: str) -> None:
        link, alone, before = self._link, self._is_alone(), len(self._running)
        allowed, planned = link.chance.random() < 0.5, link.chance.random() < _ONLY_PLANNED and command in _PROMOTIONS
        choice = operation.Choice(topic, dry_run=planned, yes=True, allow_loss=allowed, wait=_PROMOTED_WITHIN)
        link.looks = looks = Looks(link.source, link.loop.time())
        link.loop.life.answered = looks.answered
        async with operation.operation(link.settings, choice, self._told) as running:
            report = await run_command(running, command)
            if not (alone and self._is_alone()):
                return
            if not planned:
                link.invariants.obedience.told(link.invariants.layout.lanes)
            if isinstance(report, Report) and command in _PROMOTIONS and before == len(self._running):
                link.losses.report(report, looks, topic, allowed or command is failover)

    def status(self, at_rest: bool = False) -> None:
        """Collect the status some times, and hold it against the logs."""
        self._begin("status", self._status(at_rest))

    async def _status(self, at_rest: bool) -> None:
        link = self._link
        watcher: Any = Watcher(link.opened(), link.settings, newest=NewestGroups())
        for _ in range(1 if at_rest else link.chance.choice((1, 1, 3))):
            began = link.loop.time()
            found = await watcher.collect()
            link.losses.snapshot(found, began)
            if at_rest and not link.damaged:
                link.losses.at_rest(found)
            await asyncio.sleep(_WATCHED_EVERY)

    async def _reset(self, running: Operation) -> Plan[ResetReport]:
        """Have the topics go on elsewhere; a run that was killed is not always followed by the same one."""
        link, topic = self._link, running.choice.topic
        link.invariants.named |= {(name, None) for name in link.source.topics if topic in ("", name)}
        return await reset(running, Place.parse("--to", link.chance.choice(("earliest", "latest", "0", "2"))), None)

    async def _apply(self, event: CopyEvent, running: Operation) -> Plan[Any]:
        """The move of a state, without the work that the command does for it."""
        lanes = running.lanes
        await lanes.read()
        subjects = running.choice.subjects({topic for topic, _ in lanes.positions} | lanes.states.keys())

        async def apply() -> Any:
            await lanes.change(subjects, event)

        return Plan(apply, apply)

    async def _settle(self, events: Sequence[CopyEvent]) -> None:
        for event in events:
            while True:
                try:
                    await self._change(functools.partial(self._apply, event), "")
                    break
                except ApplianceError as error:
                    self._told(str(error))
                    if isinstance(error, LinkRefused) and self._link.damaged:
                        return
                await asyncio.sleep(_AGAIN_AFTER)

    def _is_alone(self) -> bool:
        """True while one command runs, and all markers are written; one that was killed has no effect any more."""
        lanes = self._link.destination.topics.get(self._link.naming.positions_topic)
        shown = lanes is None or not any(log.open for log in lanes.logs)
        return shown and sum(life.alive and not task.done() for life, task in self._running) == 1

    def translate(self, at_rest: bool = False) -> None:
        """Read the maps of offsets, and hold all that they say against the logs."""
        self._begin("translate", self._translate(at_rest))

    async def _translate(self, at_rest: bool) -> None:
        maps = OffsetMaps(self._link.at_destination(), self._link.naming)
        await maps.refresh()
        self._link.at_rest.translated(maps, at_rest)

    def grow_copies(self) -> None:
        """Give copies that nobody has claimed as many partitions as their topics have."""
        for topic in self._link.source.topics.values():
            copy = self._link.destination.topics.get(self._link.naming.destination(topic.name))
            if copy is not None and len(copy.logs) < len(topic.logs):
                self._link.destination.grow(copy.name, len(topic.logs))

    def _begin(self, what: str, command: Coroutine[object, object, object]) -> None:
        life = Life(f"operator-{len(self._running) + 1}")
        self._running.append((life, self._link.loop.start(life, self._run(what, command))))

    async def _run(self, what: str, command: Coroutine[object, object, object]) -> None:
        self._link.fates.note(what)
        try:
            self._link.fates.note("done:", await command)
        except ApplianceError as error:
            self._link.fates.note("failed:", error)

    def _told(self, line: str) -> None:
        self._link.fates.note(line)
