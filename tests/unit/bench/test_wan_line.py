"""The delays of the long line, without sockets."""

import pytest

from bench.lib.wan_proxy import Line


def test_a_byte_flies_half_a_round_trip() -> None:
    line = Line(bandwidth=1000, delay=0.05)
    assert line.enter(now=7.0, size=1) == pytest.approx(7.051)


def test_who_comes_while_another_is_sent_waits_for_him() -> None:
    line = Line(bandwidth=1000, delay=0.05)
    line.enter(now=0.0, size=100)
    assert line.enter(now=0.01, size=100) == pytest.approx(0.25)


def test_an_idle_line_saves_nothing_up() -> None:
    line = Line(bandwidth=1000, delay=0.05)
    line.enter(now=0.0, size=100)
    assert line.enter(now=60.0, size=100) == pytest.approx(60.15)


def test_bytes_come_out_in_the_order_in_which_they_entered() -> None:
    line = Line(bandwidth=50e6, delay=0.05)
    arrivals = [line.enter(now=1e6, size=1) for _ in range(1000)]
    assert arrivals == sorted(set(arrivals))


def test_more_may_come_when_twenty_milliseconds_of_the_queue_are_left() -> None:
    line = Line(bandwidth=1000, delay=0.05)
    line.enter(now=0.0, size=100)
    assert line.open_at == pytest.approx(0.08)
