"""Commands that are killed at a write: the same command again ends as an undisturbed one does.

A row of the table is a command, with the state of the link before it. It is killed at each request that changes a
cluster, before the request is carried out and after that.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from appliance.commands.deletion import delete_link
from appliance.commands.failback.failback import failback
from appliance.commands.lanes import lanes
from appliance.commands.model.position_change import Place
from appliance.commands.pause import set_paused
from appliance.commands.promotion import failover, promote
from appliance.commands.removal import remove_topics
from appliance.commands.reset import reset
from appliance.commands.run import operation
from appliance.commands.run.link_lanes import LinkLanes
from appliance.commands.run.runner import Plan
from appliance.engine.model import map_growth
from appliance.errors import LinkRefused
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.offset_maps import segment_records
from appliance.link.model.copy_states import CopyEvent, CopyState, effective
from tests.simulation import log as logs
from tests.simulation.loop import Life
from tests.simulation.operator_commands import simulated
from tests.simulation.scenario import Begun
from tests.support.operating import run_command

_READS = frozenset(
    {
        *("Ask", "FetchExchange", "ListOffsetsRequest", "OffsetForLeaderEpochRequest", "DescribeConfigsRequest"),
        *("FindCoordinatorRequest", "ListGroupsRequest", "OffsetFetchRequest", "DescribeGroupsRequest"),
        *("DescribeProducersRequest", "ListTransactionsRequest", "DescribeTransactionsRequest", "DescribeAclsRequest"),
    }
)
_HANGS = 200.0
"""Longest time of a command, in simulated seconds."""

Work = Callable[[operation.Operation], Awaitable[Plan[Any]]]


class Killable(Begun):
    """A link of one topic and three lanes, whose commands may be killed."""

    def __init__(self) -> None:
        super().__init__(starts=False)
        self.destination.delete(self.positions.name)
        self.process.start(None)
        self.go_on(3)
        self.ended_at(partial(lanes, count=3, balance=False, sample=0.0), 0, False, "")

    def ended_at(self, work: Work, write: int, carried_out: bool, topic: str, keeps: bool = False) -> int:
        """Kill a command at its write of this number, 0 for never; the number of its writes."""
        life, count = Life("operator"), 0

        def trap(request: str, is_carried_out: bool) -> None:
            nonlocal count
            if request in _READS or is_carried_out != carried_out:
                return
            count += 1
            life.alive = count != write

        async def run() -> None:
            choice = operation.Choice(topic, yes=True, wait=3.0, allow_loss=True, keep_diverged=keeps)
            async with operation.operation(self.settings, choice, lambda _: None) as running:
                await run_command(running, work)

        life.trap = trap
        with simulated(self.source, self.destination, self.fates):
            task, until = self.loop.start(life, run()), self.loop.time() + _HANGS
            self.loop.run_while(lambda: not task.done() and life.alive and self.loop.time() < until)
        assert task.done() or not life.alive, "it hangs"
        if task.done():
            task.result()
        self.go_on(3)
        return count

    def outcome(self) -> tuple[object, ...]:
        """What is to be the same after any kill: the claims, the states of all lanes, the positions and the records."""
        records = {
            (side, name): [record for log in topic.logs for _, record in logs.seen(log)]
            for side, brokers in (("source", self.source), ("destination", self.destination))
            for name, topic in brokers.topics.items()
            if name.startswith("aaa") or name.endswith(".diverged")
        }
        return self.command(self._lanes), records, sorted(self.destination.topics)

    async def _lanes(self, running: operation.Operation) -> object:
        """The claims, and the content of the lanes but for times, runs and epochs; None of a link that is deleted."""
        registry, now = running.link.registry, running.lanes
        await registry.refresh()
        claims = sorted((copy[0], claim.link, bool(claim.deleted_by)) for copy, claim in registry.ledger.claims.items())
        try:
            await now.read()
        except LinkRefused:
            return claims, None
        states = [{each.topic: each.state for each in lane.states.values()} for lane in now.checkpoints]
        gaps = [
            sorted((self._records(gap.first), self._records(gap.next)) for gap in lane.gaps.values())
            for lane in now.checkpoints
        ]
        positions = {key: (self._records(held.next_offset), held.stopped) for key, held in now.positions.items()}
        return claims, states, gaps, positions, now.layout.lanes

    def _records(self, offset: int) -> int:
        """Number of records of the source below an offset: the markers of killed transactions have offsets too."""
        return sum(at < offset for at, _ in logs.seen(self.log))


def _promoted(link: Killable) -> None:
    link.ended_at(failover, 0, False, "aaa")
    link.write_copy(4)


def _diverged(link: Killable) -> None:
    """The source has three records that never came over."""
    link.process.kill()
    link.write_singly(3)
    _promoted(link)


def _paused(link: Killable) -> None:
    link.ended_at(partial(set_paused, event=CopyEvent.PAUSE), 0, False, "aaa")


@dataclass(frozen=True, slots=True)
class Row:
    """A command on some topics, after ``before``; with ``keeps`` a failback keeps what never came over.

    With ``repeats`` the same command begins anew once it has ended.
    """

    work: Work
    before: Callable[[Killable], object] = lambda _: None
    topic: str = "aaa"
    keeps: bool = False
    repeats: bool = False


COMMANDS = {
    "pause": Row(partial(set_paused, event=CopyEvent.PAUSE)),
    "pause of the link": Row(partial(set_paused, event=CopyEvent.PAUSE), topic=""),
    "resume": Row(partial(set_paused, event=CopyEvent.RESUME), _paused),
    "failover": Row(failover),
    "promote": Row(promote),
    "failback": Row(failback, _promoted),
    "failback of a diverged source": Row(failback, _diverged),
    "failback --keep-diverged": Row(failback, _diverged, keeps=True),
    "reset": Row(partial(reset, place=Place.parse("--to", "4"), number=None), repeats=True),
    "reset of what is paused": Row(partial(reset, place=Place.parse("--to", "4"), number=None), _paused),
    "lanes": Row(partial(lanes, count=2, balance=False, sample=0.0), topic=""),
    "rm-topic": Row(remove_topics),
    "rm-topic --delete-copy": Row(partial(remove_topics, delete_copies=True)),
    "link delete": Row(partial(delete_link, delete_copies=True), lambda link: link.process.kill(), topic=""),
}


def _after(row: Row, write: int, carried_out: bool) -> tuple[tuple[object, ...], int]:
    """The outcome after a kill at a write, if any, and the same command again; and the number of writes."""
    link = Killable()
    row.before(link)
    writes = link.ended_at(row.work, write, carried_out, row.topic, row.keeps)
    if write:
        link.ended_at(row.work, 0, carried_out, row.topic, row.keeps)
    link.go_on(7)  # until what a kill has left open is ended
    outcome = link.outcome()
    link.loop.close()
    return outcome, writes


@pytest.mark.parametrize("most", [12, pytest.param(1000, marks=pytest.mark.release)])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_killed_at_any_write_is_finished_by_the_same_command(name: str, most: int) -> None:
    row = COMMANDS[name]
    undisturbed, writes = _after(row, 0, False)
    assert writes > 0
    for write in range(1, writes + 1, -(-writes // most)):
        for carried_out in (False,) if row.repeats and write == writes else (False, True):
            outcome, _ = _after(row, write, carried_out)
            assert outcome == undisturbed, f"{name} killed at write {write} of {writes}, carried out: {carried_out}"


def test_a_killed_reset_that_goes_on_moves_no_position_before_every_lane_knows_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A lane that does not know copies on: what it copies from the new place would be copied again by the next run.
    move, before, row = LinkLanes.move, list[list[CopyState]](), COMMANDS["reset"]

    async def and_look(self: LinkLanes, index: int, moves: Callable[..., Any]) -> None:
        await self.read()
        before.append([effective(lane.states, "aaa") for lane in self.checkpoints])
        await move(self, index, moves)

    monkeypatch.setattr(LinkLanes, "move", and_look)
    for write in range(1, 20, 3):
        link = Killable()
        link.ended_at(row.work, write, True, row.topic)
        link.ended_at(row.work, 0, True, row.topic)
        link.loop.close()
    assert len(before) >= len(range(1, 20, 3))
    assert all(set(states) == {CopyState.RESETTING} for states in before)


def test_a_change_of_lanes_that_is_killed_leaves_no_map_in_another_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_growth, "TAIL_BYTES", 1)
    monkeypatch.setattr(map_growth, "SEGMENT_BYTES", 1)
    row = COMMANDS["lanes"]

    async def lanes_of_maps(running: operation.Operation) -> list[bool]:
        """Of each lane, whether it has the only partition's map."""
        destination, topic = running.link.destination, running.naming.offsets_topic
        return [bool(await segment_records(destination, Partition(topic, lane))) for lane in range(3)]

    def lanes_after(write: int) -> tuple[list[bool], list[bool], int]:
        """The same before and after a change that is killed at this write, and the number of its writes."""
        link = Killable()
        for _ in range(3):
            link.write_singly(3)
            link.go_on(2)
        before = link.command(lanes_of_maps)
        writes = link.ended_at(row.work, write, True, row.topic)
        if write:
            link.ended_at(row.work, 0, True, row.topic)
        after = link.command(lanes_of_maps)
        link.loop.close()
        return before, after, writes

    before, after, writes = lanes_after(0)
    assert (sum(before), sum(after), before == after) == (1, 1, False)
    for write in range(writes, 0, -2):
        assert lanes_after(write)[1] == after, write
