"""The stopwatch, fed with looks."""

from bench.watching import Timeline


def test_the_time_runs_from_the_last_look_that_saw_nothing_to_the_last_change() -> None:
    timeline = Timeline(records=100)
    for now, offsets in [(0.0, 0), (1.0, 0), (1.5, 40), (2.0, 40), (3.5, 104), (4.0, 104), (9.0, 104)]:
        timeline.looked(now, offsets)
    assert timeline.seconds == 2.5


def test_a_copy_that_one_look_saw_whole_took_the_time_since_the_look_before() -> None:
    timeline = Timeline(records=100)
    timeline.looked(1.0, 0)
    timeline.looked(1.25, 100)
    assert timeline.seconds == 0.25


def test_it_is_not_settled_while_offsets_are_fewer_than_records() -> None:
    timeline = Timeline(records=100)
    timeline.looked(0.0, 0)
    timeline.looked(1.0, 99)
    assert not timeline.settled(now=1000.0)


def test_it_is_not_settled_while_offsets_still_grow_since_some_of_them_are_markers() -> None:
    timeline = Timeline(records=100)
    timeline.looked(0.0, 0)
    timeline.looked(1.0, 101)
    assert not timeline.settled(now=1.1)
    timeline.looked(2.0, 105)
    assert not timeline.settled(now=2.1)
    assert timeline.settled(now=10.0)
