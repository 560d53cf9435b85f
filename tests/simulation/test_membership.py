"""Which process copies: each history on a clock of its own, with a coordinator that behaves as Kafka's."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence

import pytest

from appliance.link.model.standby import REBALANCE_SECONDS, SESSION_SECONDS
from tests.simulation.membership import Coordinator, Process
from tests.support.virtual_time import run

DEATH, LEAVE = 12.0, 2.0
"""Bounds of a hand-over in the group, in seconds; the rest of 15 s and 3 s is for the lanes' start."""


def group(names: str, seed: int = 1) -> tuple[Coordinator, list[Process]]:
    coordinator = Coordinator(random.Random(seed))
    return coordinator, [Process(coordinator, name) for name in names]


def played(history: Callable[[], Coroutine[None, None, None]]) -> None:
    async def ended() -> None:
        await history()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    run(ended())


async def settled(processes: Sequence[Process], within: float) -> Process:
    """The only process that copies, once every process that is well agrees on it; it must come to that in time."""
    async with asyncio.timeout(within):
        while True:
            well = [each for each in processes if each.well]
            active = [each for each in well if each.active]
            if len(active) == 1 and {each.membership.assignment.active for each in well} == {active[0].name}:
                return active[0]
            await asyncio.sleep(0.05)


async def begun(processes: Sequence[Process]) -> Process:
    for each in processes:
        each.start()
    active = await settled(processes, 6)
    for each in processes:
        each.membership.tell_ready()
    await asyncio.sleep(2)
    return active


def test_a_killed_one_is_followed_by_a_standby_within_its_session() -> None:
    async def history() -> None:
        _, processes = group("abc")
        active = await begun(processes)
        active.kill()
        following = await settled([each for each in processes if each is not active], DEATH)
        assert following.membership.assignment.reason == f"{active.name} is gone, or silent"

    played(history)


def test_one_that_is_stopped_hands_over_at_once() -> None:
    async def history() -> None:
        _, processes = group("ab")
        active = await begun(processes)
        leaving = asyncio.create_task(active.membership.leave())
        following = await settled([each for each in processes if each is not active], LEAVE)
        assert following.membership.assignment.reason == f"{active.name} was stopped"
        await leaving
        active.kill()
        assert await settled([following], LEAVE) is following

    played(history)


def test_one_that_is_alone_leaves_without_waiting_for_anybody() -> None:
    async def history() -> None:
        coordinator, (alone,) = group("a")
        await begun([alone])
        async with asyncio.timeout(0.2):
            await alone.membership.leave()
        assert not coordinator.members

    played(history)


def test_a_paused_one_is_a_standby_once_it_is_awake() -> None:
    async def history() -> None:
        _, processes = group("ab")
        active = await begun(processes)
        active.pause()
        following = await settled([each for each in processes if each is not active], DEATH)
        active.wake()
        assert await settled(processes, 2) is following

    played(history)


def test_a_paused_standby_changes_nothing_before_and_after() -> None:
    async def history() -> None:
        _, processes = group("ab")
        active = await begun(processes)
        standby = next(each for each in processes if each is not active)
        standby.pause()
        await asyncio.sleep(30)
        standby.wake()
        assert await settled(processes, 2) is active
        assert active.membership.assignment.number == 1

    played(history)


def test_one_that_starts_again_in_its_place_waits_for_nobody() -> None:
    async def history() -> None:
        coordinator, (first,) = group("a")
        await begun([first])
        first.kill()
        again = Process(coordinator, "again", place="a")
        again.start()
        again.membership.tell_ready()
        assert await settled([again], 1) is again
        assert again.membership.assignment.reason == "a has started again"

    played(history)


def test_one_that_dies_again_and_again_gives_way_to_a_standby_that_is_ready() -> None:
    async def history() -> None:
        coordinator, processes = group("ab")
        active = await begun(processes)
        standby = next(each for each in processes if each is not active)
        for number in range(3):
            active.kill()
            active = Process(coordinator, f"again-{number}", place=processes[0].name)
            active.start()
            await asyncio.sleep(3)
        assert await settled([active, standby], 1) is standby

    played(history)


def test_one_that_loses_the_source_gives_way_to_a_standby_that_has_it() -> None:
    async def history() -> None:
        _, processes = group("ab")
        active = await begun(processes)
        active.membership.tell_ready(ready=False)
        following = await settled([each for each in processes if each is not active], LEAVE)
        assert following.membership.assignment.reason == f"{active.name} is not ready"
        active.membership.tell_ready()
        await asyncio.sleep(5)
        assert await settled(processes, 1) is following

    played(history)


def test_a_source_that_nobody_reaches_moves_nothing() -> None:
    async def history() -> None:
        _, processes = group("ab")
        active = await begun(processes)
        for each in sorted(processes, key=lambda each: each is active):
            each.membership.tell_ready(ready=False)
            await asyncio.sleep(2)
        assert await settled(processes, 1) is active

    played(history)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("cut", [1.0, 60.0])
def test_two_that_were_cut_off_agree_in_whatever_order_they_come_back(order: Sequence[int], cut: float) -> None:
    async def history() -> None:
        _, processes = group("ab")
        await begun(processes)
        for each in processes:
            each.cut = True
        await asyncio.sleep(cut)
        for index in order:
            processes[index].cut = False
            await asyncio.sleep(5)
        await settled(processes, DEATH)

    played(history)


def test_one_that_cannot_reach_the_coordinator_copies_on() -> None:
    async def history() -> None:
        coordinator, processes = group("ab")
        active = await begun(processes)
        coordinator.down = True
        await asyncio.sleep(60)
        assert [each for each in processes if each.active] == [active]
        coordinator.down = False
        coordinator.fail_over()
        assert await settled(processes, 2) is active

    played(history)


def test_a_coordinator_that_dies_with_the_active_one_costs_its_own_time_and_a_session() -> None:
    async def history() -> None:
        coordinator, processes = group("ab")
        active = await begun(processes)
        active.kill()
        coordinator.down = True
        await asyncio.sleep(3)
        coordinator.down = False
        coordinator.fail_over()
        await settled([each for each in processes if each is not active], DEATH)

    played(history)


def test_case_1501_a_machine_of_the_same_name_as_the_active_one_becomes_its_standby() -> None:
    # It took the place of the other in the group, was alone there for a moment, and assigned the link to itself.
    async def history() -> None:
        coordinator, _ = group("")
        first, twin = (Process(coordinator, name, place="vm-0") for name in "ab")
        await begun([first])
        twin.start()
        await asyncio.sleep(2)
        twin.membership.tell_ready()
        await asyncio.sleep(60)
        assert await settled([first, twin], 1) is first
        assert twin.membership.assignment.number == 1

    played(history)


def test_case_1500_one_whose_coordinator_does_not_answer_copies_once_it_may_be_alone() -> None:
    # A lone replicator that started meanwhile never copied: an unreachable coordinator neither assigns nor refuses.
    async def history() -> None:
        coordinator, (alone, other) = group("ab")
        coordinator.down = True
        alone.start()
        await asyncio.sleep(25)
        assert not alone.active
        async with asyncio.timeout(10):
            await alone.membership.until_active()
        coordinator.down = False
        other.start()
        await asyncio.sleep(5)
        await settled([alone, other], 1)

    played(history)


def test_case_1502_a_number_of_an_earlier_life_of_the_group_moves_nothing() -> None:
    # A member that came back after a cut knew a higher number, and took the link from the one that had begun anew.
    async def history() -> None:
        coordinator, (first, second) = group("ab")
        await begun([first, second])
        for _ in range(3):
            for each in (first, second):
                each.membership.tell_ready(ready=False)
                await asyncio.sleep(2)
                each.membership.tell_ready()
                await asyncio.sleep(1)
        second.cut = True
        first.kill()
        await asyncio.sleep(30)
        assert not coordinator.members
        again = Process(coordinator, "again", place="a")
        again.start()
        again.membership.tell_ready()
        assert await settled([again], 5) is again
        second.cut = False
        await asyncio.sleep(10)
        assert await settled([again, second], 1) is again

    played(history)


def test_case_1503_a_refusal_that_passes_does_not_last() -> None:
    # An active one that was refused once was no member any more until it was started again.
    async def history() -> None:
        coordinator, processes = group("ab")
        active = await begun(processes)
        coordinator.denied = True
        await asyncio.sleep(5)
        coordinator.denied = False
        await asyncio.sleep(35)
        assert await settled(processes, 1) is active
        assert active.membership.refused is None

    played(history)


def test_case_1506_one_that_dies_while_another_joins_is_followed_in_time() -> None:
    # The coordinator completes each rebalance without a static member, and gives it a new session: that took 30 s.
    async def history() -> None:
        coordinator, (first, second) = group("ab")
        await begun([first])
        second.start()
        async with asyncio.timeout(2):
            while coordinator.state != "Preparing":
                await asyncio.sleep(0.001)
        first.kill()
        second.membership.tell_ready()
        await settled([second], SESSION_SECONDS + 2 * REBALANCE_SECONDS + 1)

    played(history)


def test_a_key_without_the_right_copies_as_if_it_were_alone() -> None:
    async def history() -> None:
        coordinator, (alone,) = group("a")
        coordinator.denied = True
        alone.start()
        async with asyncio.timeout(1):
            await alone.membership.until_active()
        assert "GROUP_AUTHORIZATION_FAILED" in str(alone.membership.refused)
        async with asyncio.timeout(0.1):
            await alone.membership.confirm()
            await alone.membership.leave()

    played(history)


def test_a_standby_that_loses_the_right_does_not_copy() -> None:
    async def history() -> None:
        coordinator, processes = group("ab")
        active = await begun(processes)
        coordinator.denied = True
        await asyncio.sleep(30)
        assert [each for each in processes if each.active] == [active]
        assert active.membership.refused
        assert active.membership.assignment.number == 1
        assert not next(each for each in processes if each is not active).membership.refused

    played(history)


Misfortune = Callable[[Coordinator, list[Process], random.Random], Awaitable[None]]


def _start_again(coordinator: Coordinator, processes: list[Process], index: int, chance: random.Random) -> None:
    processes[index].kill()
    name = processes[index].name[0]
    processes[index] = Process(coordinator, f"{name}{chance.random()}", place=name)
    processes[index].start()


async def _dies(coordinator: Coordinator, processes: list[Process], chance: random.Random) -> None:
    index = chance.randrange(len(processes))
    before = processes[index]
    before.kill()
    await asyncio.sleep(chance.choice((0.0, 1.0, 15.0)))
    _start_again(coordinator, processes, index, chance)
    await asyncio.sleep(chance.uniform(0, 5))
    processes[index].membership.tell_ready()


async def _sleeps(_: Coordinator, processes: list[Process], chance: random.Random) -> None:
    one = chance.choice(processes)
    one.pause()
    await asyncio.sleep(chance.choice((0.3, 5.0, 12.0, 40.0)))
    one.wake()


async def _is_cut_off(_: Coordinator, processes: list[Process], chance: random.Random) -> None:
    chosen = chance.sample(processes, chance.randint(1, len(processes)))
    for each in chosen:
        each.cut = True
    await asyncio.sleep(chance.choice((0.3, 5.0, 12.0, 40.0)))
    for each in chosen:
        each.cut = False
        await asyncio.sleep(chance.choice((0.0, 4.0)))


async def _coordinator_moves(coordinator: Coordinator, _: list[Process], chance: random.Random) -> None:
    coordinator.down = True
    await asyncio.sleep(chance.choice((0.1, 3.0, 12.0)))
    coordinator.down = False
    coordinator.fail_over()


async def _is_stopped(coordinator: Coordinator, processes: list[Process], chance: random.Random) -> None:
    index = chance.randrange(len(processes))
    before = processes[index]
    await before.membership.leave()
    _start_again(coordinator, processes, index, chance)
    processes[index].membership.tell_ready()


MISFORTUNES: Sequence[Misfortune] = (_dies, _sleeps, _is_cut_off, _coordinator_moves, _is_stopped)


@pytest.mark.parametrize("seed", range(60))
def test_after_any_misfortunes_one_of_those_that_are_well_copies_and_goes_on(seed: int) -> None:
    async def history() -> None:
        chance = random.Random(seed)
        coordinator, processes = group("abc"[: chance.randint(2, 3)], seed)
        await begun(processes)
        for _ in range(6):
            misfortunes = [
                chance.choice(MISFORTUNES)(coordinator, processes, chance) for _ in range(chance.choice((1, 1, 2)))
            ]
            await asyncio.gather(*misfortunes)
        await asyncio.sleep(30)  # a request may have been lost with the last coordinator
        active = await settled(processes, 1)
        number = active.membership.assignment.number
        await asyncio.sleep(30)
        assert await settled(processes, 1) is active
        assert active.membership.assignment.number == number

    played(history)
