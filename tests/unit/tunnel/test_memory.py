from hypothesis import given
from hypothesis import strategies as st

from appliance.tunnel.stream.memory import READ_SIZE_MAX, READ_SIZE_MIN, WAITING_MAX, ReadBudget


def test_reads_are_large_until_the_budget_is_nearly_spent() -> None:
    budget = ReadBudget()
    assert budget.read_size == READ_SIZE_MAX
    budget.waiting = WAITING_MAX - 2 * READ_SIZE_MAX
    assert budget.read_size == READ_SIZE_MAX
    budget.waiting = WAITING_MAX - READ_SIZE_MAX
    assert budget.read_size == READ_SIZE_MAX // 2


@given(st.integers(0, 10_000))
def test_however_many_jam_each_has_the_least_read_and_all_together_the_budget(connections: int) -> None:
    budget = ReadBudget()
    for _ in range(connections):
        budget.waiting += budget.read_size
    assert budget.waiting <= WAITING_MAX + connections * READ_SIZE_MIN
    assert budget.read_size >= READ_SIZE_MIN
