"""The bytes that a task may read: in a second, as its share of a link's bound, and in one Fetch."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.engine.read.buffer_budget import Allowance, FetchSizer, share
from appliance.kafka.client.interface import Transfer
from tests.support.clock import Clock
from tests.support.virtual_time import run

KIB = 1024


def test_without_a_bound_nothing_is_waited_for() -> None:
    allowance = Allowance(Clock())
    allowance.spend(10**12)
    assert allowance.pause == 0
    assert run(allowance.remaining(8_000_000)) == 8_000_000


def test_a_bound_begins_with_a_seconds_worth_and_lets_no_more_be_saved() -> None:
    clock = Clock()
    allowance = Allowance(clock)
    allowance.bound(1000 * KIB)
    for _ in range(2):
        assert run(allowance.remaining(8_000_000)) == 1000 * KIB
        clock.now += 3600


def test_the_remaining_bytes_are_asked_for_as_soon_as_it_is_worth_it() -> None:
    clock = Clock()
    allowance = Allowance(clock)
    allowance.bound(100 * KIB)
    allowance.spend(100 * KIB)
    assert allowance.pause == pytest.approx(0.64)
    clock.now = 0.64
    assert run(allowance.remaining(8_000_000)) == pytest.approx(64 * KIB, abs=1)


@pytest.mark.parametrize("rate", [1, 7, 1000])
def test_a_bound_that_is_small_waits_for_a_seconds_worth_at_most(rate: int) -> None:
    allowance = Allowance(Clock())
    allowance.bound(rate)
    allowance.spend(rate)
    assert allowance.pause == pytest.approx(1.0)


def test_an_answer_that_was_larger_than_the_bound_is_paid_for_afterwards() -> None:
    allowance = Allowance(Clock())
    allowance.bound(1000)
    allowance.spend(61_000)
    assert allowance.pause == pytest.approx(61.0)


def test_a_waiting_fetcher_goes_on_at_once_when_the_bound_rises_or_falls_away() -> None:
    async def rising(bytes_per_second: int) -> float:
        loop = asyncio.get_running_loop()
        allowance = Allowance(loop.time)
        allowance.bound(1000)
        allowance.spend(1_001_000)
        waiting = asyncio.create_task(allowance.remaining(8_000_000))
        await asyncio.sleep(10.0)
        allowance.bound(bytes_per_second)
        await waiting
        return loop.time()

    assert run(rising(0)) == pytest.approx(10.0)
    assert run(rising(990_000)) == pytest.approx(11.0, abs=0.1)


@given(
    rate=st.integers(1000, 10**9),
    answers=st.lists(st.tuples(st.integers(1, 10**7), st.floats(0, 5)), max_size=20),
)
def test_never_more_than_the_bucket_and_the_newest_answer_has_come(rate: int, answers: list[tuple[int, float]]) -> None:
    async def copied() -> None:
        loop = asyncio.get_running_loop()
        allowance = Allowance(loop.time)
        allowance.bound(rate)
        spent = 0
        for size, idle in answers:
            await asyncio.sleep(idle)
            await allowance.remaining(10**8)
            assert spent <= rate * (1.002 + loop.time())
            allowance.spend(size)
            spent += size

    run(copied())


@pytest.mark.parametrize(
    ("bound", "tasks", "each"), [(0, 3, 0), (1000, 1, 1000), (1000, 3, 333), (2, 3, 1), (1000, 0, 1000)]
)
def test_a_links_bound_is_dealt_evenly_and_no_task_gets_nothing(bound: int, tasks: int, each: int) -> None:
    assert share(bound, tasks) == each


MEGABYTE = 1e6
MEBIBYTE = 1024 * 1024


def after(latency: float, rate: float, answers: int = 12, active: int = 1, waited: float = 0.0) -> FetchSizer:
    """The sizer of a line with this latency and rate; every second answer has waited for records at the broker."""
    sizer = FetchSizer()
    for number in range(answers):
        size = sizer.response_bytes
        began = number + latency + (waited if number % 2 else 0.0)
        sizer.note_answer(number, Transfer(began, began + size / rate, size), active)
    return sizer


def test_a_leader_nearby_is_asked_for_no_more_than_it_ever_was() -> None:
    for active in (1, 16):
        sizer = after(0.002, 1_000 * MEGABYTE, active=active)
        assert (sizer.far, sizer.response_bytes, sizer.partition_bytes) == (False, 8 * MEBIBYTE, 2 * MEBIBYTE)


def test_an_answer_from_far_away_keeps_the_line_busy_for_most_of_the_time() -> None:
    sizer = after(0.1, 30 * MEGABYTE)
    assert sizer.far
    carried = sizer.response_bytes / (30 * MEGABYTE)
    assert carried / (carried + 0.1) > 0.85


def test_an_answer_is_never_larger_than_memory_allows() -> None:
    assert after(0.3, 1_000 * MEGABYTE).response_bytes == 32 * MEBIBYTE


def test_a_partition_alone_gets_the_whole_answer_and_many_share_it() -> None:
    assert after(0.1, 50 * MEGABYTE).partition_bytes == 32 * MEBIBYTE
    assert after(0.1, 50 * MEGABYTE, active=8).partition_bytes == 4 * MEBIBYTE
    assert after(0.1, 50 * MEGABYTE, active=1000).partition_bytes == 2 * MEBIBYTE


def test_the_wait_for_records_is_no_distance() -> None:
    assert not after(0.001, 100 * MEGABYTE, waited=0.5).far


def test_a_few_late_answers_are_no_distance() -> None:
    assert not after(0.1, 100 * MEGABYTE, answers=4).far


def test_a_slow_leader_is_asked_for_little_so_that_nothing_waits_long_behind_it() -> None:
    sizer = after(0.05, 0.5 * MEGABYTE)
    assert sizer.response_bytes / (0.5 * MEGABYTE) < 1.5


def test_before_the_first_answer_a_line_is_taken_for_a_slow_one() -> None:
    assert FetchSizer().response_bytes == MEBIBYTE
