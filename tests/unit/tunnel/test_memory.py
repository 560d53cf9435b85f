from hypothesis import given
from hypothesis import strategies as st

from appliance.tunnel.stream.memory import BUDGET, READ_SIZE_MAX, READ_SIZE_MIN, Pool


def test_reads_are_large_until_the_budget_is_nearly_spent() -> None:
    pool = Pool()
    assert pool.read_size == READ_SIZE_MAX
    pool.waiting = BUDGET - 2 * READ_SIZE_MAX
    assert pool.read_size == READ_SIZE_MAX
    pool.waiting = BUDGET - READ_SIZE_MAX
    assert pool.read_size == READ_SIZE_MAX // 2


@given(st.integers(0, 10_000))
def test_however_many_jam_each_has_the_least_read_and_all_together_the_budget(connections: int) -> None:
    pool = Pool()
    for _ in range(connections):
        pool.waiting += pool.read_size
    assert pool.waiting <= BUDGET + connections * READ_SIZE_MIN
    assert pool.read_size >= READ_SIZE_MIN
