"""The rate of arrivals."""

import pytest

from demo.arrivals import Arrivals


def arrivals(*batches: tuple[float, int]) -> Arrivals:
    counted = Arrivals()
    for now, records in batches:
        counted.add(records, now)
    return counted


def test_all_records_are_counted():
    assert arrivals((1.0, 10), (2.0, 0), (3.0, 5)).count == 15


def test_the_rate_is_of_the_records_that_come_after_the_first_arrival():
    assert arrivals((1.0, 500), (2.0, 100), (3.0, 100)).rate_since(0) == pytest.approx(100)


def test_records_that_arrived_before_count_for_nothing():
    assert arrivals((1.0, 500), (2.0, 500), (10.0, 7), (12.0, 100)).rate_since(9) == pytest.approx(50)


@pytest.mark.parametrize("batches", [(), ((1.0, 10),)])
def test_there_is_no_rate_when_all_came_at_once(batches):
    assert arrivals(*batches).rate_since(0) == 0
