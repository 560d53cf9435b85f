import contextlib

import pytest

from appliance.errors import IdentityRefused, NameUnresolved, PeerError, TargetRefused, TimedOut, Unreachable
from appliance.tunnel.limits.counters import BOUNDS, Counters, Histogram, Refusal


@pytest.mark.parametrize(
    ("error", "of_the_peer", "of_the_target"),
    [
        (IdentityRefused("?"), Refusal.IDENTITY, Refusal.IDENTITY),
        (PeerError("?"), Refusal.PROTOCOL, Refusal.PROTOCOL),
        (TargetRefused("?"), Refusal.TARGET, Refusal.TARGET),
        (NameUnresolved("?"), Refusal.UNRESOLVED, Refusal.UNRESOLVED),
        (TimedOut("?"), Refusal.PEER_UNREACHABLE, Refusal.TARGET_UNREACHABLE),
        (Unreachable("?"), Refusal.PEER_UNREACHABLE, Refusal.TARGET_UNREACHABLE),
    ],
)
def test_a_refusal_has_one_cause(error, of_the_peer, of_the_target):
    counters = Counters()
    counters.peer_failed(error)
    counters.target_failed(error)
    assert sum(counters.refused.values()) == 2
    assert counters.refused.keys() == {of_the_peer, of_the_target}


def test_a_bucket_holds_the_durations_up_to_its_bound():
    histogram = Histogram()
    for seconds in (0.0, 0.001, 0.0011, 10.0, 10.1):
        histogram.observe(seconds)
    assert histogram.counts == [2, 1, *[0] * (len(BOUNDS) - 3), 1, 1]
    assert histogram.seconds == pytest.approx(20.1021)


@pytest.mark.parametrize(
    ("seconds", "share", "expected"),
    [
        ([], 0.5, None),
        ([0.003], 0.5, 0.00375),
        ([0.003] * 100, 0.99, 0.004975),
        ([0.0005] * 50 + [0.2] * 50, 0.5, 0.001),
        ([0.0005] * 50 + [0.2] * 50, 0.99, 0.247),
        ([0.0005] * 98 + [11.0] * 2, 0.5, 0.001 * 50 / 98),
        ([0.0005] * 98 + [11.0] * 2, 0.99, None),
    ],
)
def test_a_quantile_is_interpolated_in_its_bucket_and_unknown_where_no_bucket_ends(seconds, share, expected):
    histogram = Histogram()
    for each in seconds:
        histogram.observe(each)
    assert histogram.quantile(share) == (expected if expected is None else pytest.approx(expected))


def test_the_mean_is_exact_and_unknown_before_the_first():
    histogram = Histogram()
    assert (histogram.count, histogram.mean) == (0, None)
    for seconds in (1.0, 2.0, 12.0):
        histogram.observe(seconds)
    assert (histogram.count, histogram.mean) == (3, 5.0)


def test_a_connection_that_is_set_aside_is_not_open_meanwhile():
    counters = Counters(open=2)
    with contextlib.suppress(TimedOut), counters.set_aside():
        assert counters.open == 1
        raise TimedOut("?")
    assert counters.open == 2


def test_a_failure_is_not_timed():
    histogram = Histogram()
    with pytest.raises(TimedOut), histogram.timed():
        raise TimedOut("?")
    with histogram.timed():
        pass
    assert sum(histogram.counts) == 1
