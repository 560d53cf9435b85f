from hypothesis import given
from hypothesis import strategies as st

from appliance.tunnel.stream.jams import HELD_MAX, MemoryUse, jammed

MEBIBYTE = 2**20
EACH = 64 * MEBIBYTE


def still(**sizes: int) -> dict[str, MemoryUse]:
    return {name: MemoryUse(size, 1000) for name, size in sizes.items()}


def test_no_connection_is_reset_while_there_is_room() -> None:
    held = still(one=HELD_MAX)
    assert jammed(held, held, 1) == {}


def test_the_largest_that_do_not_move_are_reset_until_the_rest_has_room() -> None:
    held = still(one=EACH, two=EACH, three=EACH - 1, least=2)
    assert jammed(held, held, 1) == {"one": EACH}


def test_a_connection_that_moves_is_not_reset_whatever_it_holds() -> None:
    before = still(fast=2 * EACH, jam=EACH, slow=EACH)
    now = {**before, "fast": MemoryUse(2 * EACH, 1000 + EACH // 20), "slow": MemoryUse(EACH, 1001)}
    assert set(jammed(before, now, 1)) == {"jam"}
    assert set(jammed(before, {**now, "more": MemoryUse(EACH, 0)}, 1)) == {"jam", "slow"}


def test_a_newer_connection_is_not_judged_yet() -> None:
    assert jammed({}, still(one=2 * HELD_MAX), 1) == {}


@given(st.dictionaries(st.integers(), st.integers(0, HELD_MAX), max_size=20))
def test_a_peer_that_jams_all_its_connections_holds_no_more_than_there_is_room_for(sizes: dict[int, int]) -> None:
    held = {name: MemoryUse(size, 7) for name, size in sizes.items()}
    assert sum(sizes.values()) - sum(jammed(held, held, 1).values()) <= HELD_MAX
