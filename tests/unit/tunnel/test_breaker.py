import pytest

from appliance.tunnel.limits.breaker import FIRST_DELAY, LONGEST_DELAY, Breaker, BreakerState


def no_jitter():
    return 1.0


@pytest.fixture
def breaker():
    return Breaker(no_jitter)


def test_every_try_is_admitted_while_the_server_answers(breaker):
    assert [breaker.admits(now) for now in (0, 0, 1)] == [True, True, True]


def test_no_try_is_admitted_during_the_pause_and_one_after_it(breaker):
    breaker.failed(now=100)
    assert not breaker.admits(100 + FIRST_DELAY / 2)
    assert breaker.admits(100 + FIRST_DELAY)
    assert not breaker.admits(100 + FIRST_DELAY)


def test_the_pauses_double_up_to_the_longest(breaker):
    pauses, now = [], 0.0
    for _ in range(7):
        breaker.failed(now)
        pauses.append(next(step / 8 for step in range(1, 100) if breaker.admits(now + step / 8)))
        now += pauses[-1]
    assert pauses == [0.25, 0.5, 1, 2, 4, LONGEST_DELAY, LONGEST_DELAY]


def test_one_success_ends_it_all(breaker):
    breaker.failed(now=0)
    breaker.failed(now=0)
    breaker.succeeded()
    assert [breaker.admits(0), breaker.admits(0)] == [True, True]
    breaker.failed(now=0)
    assert breaker.admits(FIRST_DELAY)


def test_attempts_from_before_the_outage_do_not_lengthen_the_pause(breaker):
    for _ in range(50):
        breaker.failed(now=0)
    assert breaker.admits(FIRST_DELAY)


def test_a_failed_trial_opens_it_again(breaker):
    breaker.failed(now=0)
    assert breaker.admits(1)
    breaker.failed(now=1)
    assert breaker.state is BreakerState.OPEN
    assert not breaker.admits(1 + FIRST_DELAY)
    assert breaker.admits(1 + 2 * FIRST_DELAY)


def test_jitter_shortens_a_pause_by_half_at_most():
    breaker = Breaker(lambda: 0.0)
    breaker.failed(now=0)
    assert not breaker.admits(FIRST_DELAY * 0.49)
    assert breaker.admits(FIRST_DELAY * 0.5)
