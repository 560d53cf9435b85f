import uuid

from appliance.engine.model.map_growth import KnownSegments
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_records import encode_dropped, encode_segment
from appliance.link.model.offset_tail import OffsetTail

ORDERS = Partition("orders", 0)


def known(*ranges: tuple[int, int]) -> KnownSegments:
    """Segments of these ranges of the copy."""
    found = KnownSegments()
    for begin, end in ranges:
        tail = OffsetTail.begin(begin, begin).read_to(end)._replace(copy_to=end)
        found.take([encode_segment(ORDERS, Segment(uuid.uuid4(), uuid.uuid4(), tail), 1)], end)
    return found


def dropped(found: KnownSegments, start: int, kept: int | None = None) -> list[int]:
    """The first offsets of the segments that are dropped if the copy starts at an offset."""
    return [begin for _, begin in found.below({ORDERS: start}, [] if kept is None else [(ORDERS, kept)])]


def test_segments_are_dropped_that_end_where_the_copy_starts_or_before() -> None:
    found = known((0, 10), (10, 20), (20, 30))
    assert [dropped(found, start) for start in (0, 9, 10, 25, 30)] == [[], [], [0], [0, 10], [0, 10, 20]]


def test_one_that_still_grows_is_kept() -> None:
    assert dropped(known((0, 10), (10, 20)), 20, kept=10) == [0]


def test_one_by_which_an_older_one_was_cut_is_kept_as_long_as_that_one() -> None:
    found = known((0, 30), (10, 10), (15, 40))
    assert dropped(found, 20) == []
    assert dropped(found, 30) == [0, 10]


def test_case_492_one_that_cuts_all_older_ones_is_kept_as_long_as_one_of_them() -> None:
    # It was dropped first, since none begins before it, and the others held again.
    found = known((5, 10), (10, 30), (0, 0), (40, 50))
    assert dropped(found, 20) == [5]
    assert dropped(found, 30) == [5, 10, 0]


def test_offsets_of_dropped_segments_are_unknown() -> None:
    found = known((0, 10), (10, 20))
    found.take([encode_dropped((ORDERS, 0), 1)], 30)
    assert (dropped(found, 20), found.read_to) == ([10], 30)
