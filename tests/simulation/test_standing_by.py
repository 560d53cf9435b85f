"""A process that works while it is the active one of its group, in histories of two, on a clock of its own."""

import asyncio

import pytest

from appliance.errors import Fenced
from appliance.link.client.standing_by import while_active
from tests.simulation.membership import Process
from tests.simulation.test_membership import group, played, settled

NOTICES = 3.0
"""Seconds until a run has found out who has fenced it."""


class Worker:
    """The work of a member, which it may do ``runs`` times at least."""

    def __init__(self, process: Process) -> None:
        self.process, self.runs, self.fenced = process, 0, asyncio.Event()
        self.stopping = asyncio.Event()
        process.start()
        process.running.cancel()
        work = while_active(process.membership, self.stopping, self._work)
        self.task = asyncio.create_task(work, name=f"of {process.name}")
        process.membership.tell_ready()

    async def _work(self, ending: asyncio.Event) -> None:
        self.runs += 1
        fenced, ends = (asyncio.create_task(each.wait()) for each in (self.fenced, ending))
        await asyncio.wait((fenced, ends), return_when=asyncio.FIRST_COMPLETED)
        if self.fenced.is_set():
            await asyncio.sleep(NOTICES)
            self.fenced.clear()
            raise Fenced("lane 0 by another run")


def two() -> tuple[Worker, Worker]:
    _, processes = group("ab")
    first, second = map(Worker, processes)
    return first, second


async def working(first: Worker, second: Worker) -> tuple[Worker, Worker]:
    """The one that works, and the other one."""
    active = await settled([first.process, second.process], 6)
    return (first, second) if active is first.process else (second, first)


def test_one_that_is_fenced_by_the_other_member_stands_by_and_works_again_after_it() -> None:
    async def history() -> None:
        active, other = await working(*two())
        active.process.pause()
        await other.process.membership.until_active()
        active.fenced.set()
        active.process.wake()
        await asyncio.sleep(5)
        assert not active.process.active
        assert (active.runs, other.runs, active.task.done()) == (1, 1, False)
        other.stopping.set()
        await other.task
        await active.process.membership.until_active()
        await asyncio.sleep(0)
        assert active.runs == 2

    played(history)


def test_case_1551_one_whose_successor_is_gone_when_it_learns_of_it_works_again() -> None:
    # It had the newest assignment again before its run had ended, and took the other member for a stranger.
    async def history() -> None:
        active, other = await working(*two())
        active.process.pause()
        await other.process.membership.until_active()
        active.process.wake()
        active.fenced.set()
        await active.process.membership.until_passive()
        other.stopping.set()
        await other.task
        await active.process.membership.until_active()
        await asyncio.sleep(2 * NOTICES)
        assert (active.runs, active.task.done()) == (2, False)

    played(history)


def test_one_that_a_process_outside_of_the_group_has_fenced_ends_and_the_other_member_follows() -> None:
    async def history() -> None:
        active, other = await working(*two())
        await asyncio.sleep(5)
        active.fenced.set()
        await asyncio.sleep(2 * NOTICES)
        assert (active.runs, active.task.done()) == (2, False)  # case 1507: a member that was cut off may have done it
        active.fenced.set()
        with pytest.raises(Fenced):
            await active.task
        await asyncio.sleep(1)
        assert (active.process.coordinator.members.keys() != set(), other.runs) == (True, 1)

    played(history)


def test_case_1552_one_that_is_stopped_leaves_once_the_other_one_works() -> None:
    # It left before the other one had its assignment, which called it gone, or silent, in place of stopped.
    async def history() -> None:
        active, other = await working(*two())
        await asyncio.sleep(5)
        active.stopping.set()
        async with asyncio.timeout(3):
            await active.task
        assert (active.runs, other.runs) == (1, 1)
        assert other.process.membership.assignment.reason.endswith("was stopped")

    played(history)
