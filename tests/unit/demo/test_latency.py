"""Percentiles, by nearest rank."""

import pytest

from demo.latency import Latency


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([0.002], Latency(2, 2)),
        ([0.003, 0.001], Latency(1, 3)),
        ([number / 1000 for number in range(100, 0, -1)], Latency(50, 99)),
        ([0.001] * 98 + [0.5, 0.9], Latency(1, 500)),
    ],
)
def test_half_of_the_records_come_within_p50_and_99_of_100_within_p99(seconds, expected):
    found = Latency.of(seconds)
    assert (found.p50_ms, found.p99_ms) == pytest.approx((expected.p50_ms, expected.p99_ms))
