"""The comparison of two sides: every kind of difference is found and named."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.comparison import EXAMPLES_MAX, Difference, Differences, Kind, Track, compare

DISTINCT = st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=60)
REPEATING = st.lists(st.integers(0, 5), max_size=12)
FOREIGN = "xyz"


def track(records: str | list[int], first_offset: int = 0) -> Track:
    side = Track()
    for index, record in enumerate(records):
        side.append(first_offset + 2 * index, record if isinstance(record, int) else ord(record))
    return side


def differences(source: str | list[int], destination: str | list[int]) -> Differences:
    return compare("fruit", 3, track(source, 100), track(destination, 500))


def counts(found: Differences) -> tuple[int, int, int, int]:
    return found.lost, found.duplicated, found.reordered, found.altered


@pytest.mark.parametrize("records", ["", "a", "abcdef", "aaab"])
def test_equal_sides_do_not_differ(records):
    assert not differences(records, records)


@pytest.mark.parametrize(
    ("source", "destination", "lost", "duplicated", "reordered", "altered"),
    [
        ("abcdef", "bcdef", 1, 0, 0, 0),
        ("abcdef", "abdef", 1, 0, 0, 0),
        ("abcdef", "abcde", 1, 0, 0, 0),
        ("abcdef", "", 6, 0, 0, 0),
        ("abcdef", "aabcdef", 0, 1, 0, 0),
        ("abcdef", "abccdef", 0, 1, 0, 0),
        ("abcdef", "abcdeff", 0, 1, 0, 0),
        ("abcdef", "abcdbcdef", 0, 3, 0, 0),
        ("abcdef", "fabcdef", 0, 1, 0, 0),
        ("", "ab", 0, 2, 0, 0),
        ("abcdef", "bacdef", 0, 0, 1, 0),
        ("abcdef", "bcdefa", 0, 0, 1, 0),
        ("abcdef", "fabcde", 0, 0, 1, 0),
        ("abcdef", "defabc", 0, 0, 3, 0),
        ("abcdef", "fedcba", 0, 0, 5, 0),
        ("abcdef", "xbcdef", 0, 0, 0, 1),
        ("abcdef", "abxyef", 0, 0, 0, 2),
        ("abcdef", "abcdex", 0, 0, 0, 1),
        ("abcdef", "xyzxyz", 0, 0, 0, 6),
        ("abcdef", "abcxdef", 0, 1, 0, 0),
        ("abcdef", "xcdef", 1, 0, 0, 1),
        ("abcdef", "xyzbcdef", 0, 2, 0, 1),
        ("abcdef", "bcdefx", 1, 1, 0, 0),
        ("abcdef", "abxdfee", 0, 1, 1, 1),
        ("abcdef", "bbdcf", 2, 1, 1, 0),
        ("aaaa", "aaa", 1, 0, 0, 0),
        ("aaaa", "aaaaaa", 0, 2, 0, 0),
        ("aab", "aba", 0, 0, 1, 0),
    ],
)
def test_each_kind_of_difference_is_counted_as_what_it_is(source, destination, lost, duplicated, reordered, altered):
    assert counts(differences(source, destination)) == (lost, duplicated, reordered, altered)


@pytest.mark.parametrize(
    ("source", "destination", "said"),
    [
        ("abc", "ac", "lost: topic fruit partition 3, source offset 102"),
        ("abc", "abbc", "duplicated: topic fruit partition 3, source offset 102, destination offset 504"),
        ("abc", "abcx", "duplicated: topic fruit partition 3, destination offset 506"),
        ("abc", "acb", "reordered: topic fruit partition 3, source offset 104, destination offset 502"),
        ("abc", "abx", "altered: topic fruit partition 3, source offset 104, destination offset 504"),
    ],
)
def test_an_example_names_topic_partition_and_offsets(source, destination, said):
    assert [str(example) for example in differences(source, destination).examples] == [said]


def test_examples_come_in_the_order_of_the_source_and_are_few():
    found = differences(list(range(1000)), [])
    assert found.lost == 1000
    assert [example.source_offset for example in found.examples] == [100 + 2 * index for index in range(EXAMPLES_MAX)]


def test_differences_of_several_partitions_add_up():
    example = Difference(Kind.LOST, "fruit", 0, 1, None)
    many = Differences(lost=8, examples=(example,) * 8)
    assert many + Differences(1, 2, 3, 4, (example,) * 8) == Differences(9, 2, 3, 4, (example,) * EXAMPLES_MAX)


def test_no_difference_is_false_and_each_kind_is_true():
    assert not Differences()
    assert all(Differences(**{kind.value: 1}) for kind in Kind)


@given(DISTINCT, st.data())
def test_records_that_were_left_out_are_lost_and_nothing_else(source, data):
    kept = [record for record in source if data.draw(st.booleans())]
    assert counts(differences(source, kept)) == (len(source) - len(kept), 0, 0, 0)


@given(DISTINCT, st.data())
def test_a_stretch_that_was_copied_again_is_duplicated_and_nothing_else(source, data):
    end = data.draw(st.integers(0, len(source)))
    begin = data.draw(st.integers(0, end))
    twice = source[:end] + source[begin:end] + source[end:]
    assert counts(differences(source, twice)) == (0, end - begin, 0, 0)


@given(DISTINCT.filter(bool), st.data())
def test_one_record_that_moved_is_one_reordered_and_nothing_else(source, data):
    moved = list(source)
    record = moved.pop(data.draw(st.integers(0, len(source) - 1)))
    moved.insert(data.draw(st.integers(0, len(moved))), record)
    assert counts(differences(source, moved)) == (0, 0, int(moved != source), 0)


@given(DISTINCT, st.data())
def test_records_that_were_changed_are_altered_and_nothing_else(source, data):
    changed = [data.draw(st.sampled_from([record, (record + 1) % 2**64])) for record in source]
    known = set(source)
    changed = [old if new in known else new for old, new in zip(source, changed, strict=True)]
    altered = sum(old != new for old, new in zip(source, changed, strict=True))
    assert counts(differences(source, changed)) == (0, 0, 0, altered)


@given(REPEATING, st.lists(st.integers(0, 8), max_size=12))
def test_any_two_sides_differ_as_the_model_says(source, destination):
    found = differences(source, destination)
    in_both = sum((Counter(source) & Counter(destination)).values())
    strange = sum(record not in source for record in destination)
    assert found.reordered == in_both - longest_common_subsequence(source, destination)
    assert found.lost + found.altered == len(source) - in_both
    assert found.duplicated + found.altered == len(destination) - in_both
    assert found.altered <= min(len(source) - in_both, strange)
    assert bool(found) == (source != destination)
    assert len(found.examples) == min(EXAMPLES_MAX, sum(counts(found)))


def longest_common_subsequence(left: list[int], right: list[int]) -> int:
    """The length of a longest common subsequence, by the textbook's table."""
    row = [0] * (len(right) + 1)
    for one in left:
        above = list(row)
        for index, other in enumerate(right):
            row[index + 1] = above[index] + 1 if one == other else max(row[index], above[index + 1])
    return row[-1]


def test_a_large_partition_with_one_record_lost_is_compared_quickly():
    records = list(range(200_000))
    assert counts(differences(records, records[:7] + records[8:])) == (1, 0, 0, 0)
