"""The size of a Fetch, from the times of earlier answers."""

from appliance.engine.read.fetch_sizer import FetchSizer
from appliance.kafka.client.interface import Transfer

MEGABYTE = 1e6
MEBIBYTE = 1024 * 1024


def after(latency: float, rate: float, answers: int = 12, active: int = 1, waited: float = 0.0) -> FetchSizer:
    """The sizer of a line with this latency and rate; every second answer has waited for records at the broker."""
    sizer = FetchSizer()
    for number in range(answers):
        size = sizer.response_bytes
        began = number + latency + (waited if number % 2 else 0.0)
        sizer.answered(number, Transfer(began, began + size / rate, size), active)
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
