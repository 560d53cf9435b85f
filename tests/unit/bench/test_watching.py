"""The times of a copy, from a series of answers."""

from bench.lib.watching import Timeline


def answered(*answers: tuple[float, int]) -> Timeline:
    timeline = Timeline(records=100, since=0.0)
    for now, offsets in answers:
        timeline.answered(now, offsets)
    return timeline


def test_records_of_the_first_answer_do_not_count_nor_the_time_until_then() -> None:
    timeline = answered((0.0, 0), (1.0, 0), (1.5, 26), (2.0, 26), (3.5, 104), (4.0, 104), (9.0, 104))
    assert (timeline.begun, timeline.ended, timeline.offsets) == (1.0, 3.5, 104)
    assert timeline.rate(100) == 100 * 0.75 / 2.0


def test_the_rate_of_the_second_half_begins_where_half_was_seen() -> None:
    timeline = answered((0.0, 0), (1.0, 10), (3.0, 50), (4.0, 100))
    assert timeline.rate(100, after=0.5) == 50.0


def test_a_copy_that_one_look_saw_whole_took_the_time_since_the_look_before() -> None:
    assert answered((1.0, 0), (1.25, 100)).rate(100) == 400.0


def test_it_is_not_settled_while_offsets_are_fewer_than_records() -> None:
    timeline = Timeline(records=100, since=0.0)
    timeline.answered(0.0, 0)
    timeline.answered(1.0, 99)
    assert not timeline.settled(now=1000.0)


def test_it_is_not_settled_while_offsets_still_grow_since_some_of_them_are_markers() -> None:
    timeline = Timeline(records=100, since=0.0)
    timeline.answered(0.0, 0)
    timeline.answered(1.0, 101)
    assert not timeline.settled(now=1.1)
    timeline.answered(2.0, 105)
    assert not timeline.settled(now=2.1)
    assert timeline.settled(now=10.0)


def test_a_copy_of_which_nothing_more_comes_for_a_minute_has_stalled() -> None:
    timeline = answered((0.0, 0), (1.0, 50))
    assert not timeline.stalled(now=60.0)
    assert timeline.stalled(now=62.0)
    assert str(timeline) == "50 offsets of 100 records"


def test_a_copy_that_does_not_begin_within_three_minutes_has_stalled_though_it_is_looked_at() -> None:
    timeline = answered((0.0, 0), (175.0, 0))
    assert not timeline.stalled(now=179.0)
    assert timeline.stalled(now=181.0)
    assert not answered((0.0, 0), (175.0, 0), (179.0, 1)).stalled(now=181.0)


def test_after_its_last_record_no_copy_has_stalled() -> None:
    assert not answered((0.0, 0), (1.0, 100)).stalled(now=1000.0)
