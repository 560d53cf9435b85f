import pytest

from appliance.errors import IdentityRefused, NameUnresolved, PeerError, TargetRefused, TimedOut, Unreachable
from appliance.tunnel.model.counters import BOUNDS, Counters, Histogram, Refusal


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


def test_a_failure_is_not_timed():
    histogram = Histogram()
    with pytest.raises(TimedOut), histogram.timed():
        raise TimedOut("?")
    with histogram.timed():
        pass
    assert sum(histogram.counts) == 1
