"""The ends of copies that MirrorMaker 2 makes: it crashes, goes back to what it committed, and copies again."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from appliance.commands.adoption.model.alignment import Aligned, Alignment, Originals
from appliance.commands.adoption.model.plan import Allowed, Logs, of_compared
from appliance.logs.model.comparison import Run
from appliance.logs.model.span import Span
from tests.unit.commands.test_plan import REPLICA

Original = tuple[int, str, bool]
"""A source record: its offset, its content, and whether it is committed."""


@dataclass
class History:
    """A source, and the copy that MirrorMaker 2 has made of it: the content of each record with its source offset.

    ``committed`` is the source offset after the last one that it has committed.
    """

    source: Sequence[Original]
    copy: list[tuple[int, str]] = field(default_factory=list)
    committed: int = 0

    @property
    def end(self) -> int:
        """The source offset after the last committed record that is in the copy."""
        there = {offset for offset, _ in self.copy}
        return max((offset + 1 for offset, _, committed in self.source if committed and offset in there), default=0)


@st.composite
def histories(draw: st.DrawFn, alike: bool = False) -> History:
    contents = st.sampled_from("xyz") if alike else st.none()
    offset, source = 0, []
    for number in range(draw(st.integers(1, 30))):
        offset += draw(st.sampled_from((1, 1, 1, 2)))  # after a marker
        committed = draw(st.sampled_from((True, True, True, False)))
        source.append((offset, draw(contents) or f"{number}", committed))
    history = History(source)
    reads = [each for each in source if each[2]] if draw(st.booleans()) else source
    for _ in range(draw(st.integers(1, 4))):
        left = [each for each in reads if each[0] >= history.committed]
        run = left[: draw(st.integers(0, len(left)))]
        history.copy += [(at, content) for at, content, _ in run]
        if run:
            history.committed = draw(st.sampled_from([history.committed, *(at + 1 for at, _, _ in run)]))
    return history


def originals(source: Sequence[Original]) -> Originals:
    found = Originals()
    for offset, content, committed in source:
        if committed:
            found.add(offset, content.encode())
        else:
            found.aborted.add(content.encode())
    return found


def aligned(source: Originals, copy: Sequence[str], begin: int = 0) -> Aligned:
    alignment = Alignment(source, begin)
    for offset, content in enumerate(copy):
        alignment.feed(offset, content.encode())
    found = alignment.finish()
    if not found.count and alignment.lowest is not None:
        return aligned(source, copy, alignment.lowest)
    return found


def letters(text: str, first: int = 0) -> Originals:
    return originals([(first + number, letter, True) for number, letter in enumerate(text)])


def listed(runs: Sequence[Run]) -> list[tuple[int, int]]:
    return [(run.source + number, run.copy + number) for run in runs for number in range(run.length)]


def is_subsequence(some: Sequence[str], of: Sequence[str]) -> bool:
    left = iter(of)
    return all(each in left for each in some)


@given(histories())
def test_copying_goes_on_after_the_last_copied_record_and_every_double_is_named(history: History) -> None:
    source, copy = originals(history.source), [content for _, content in history.copy]
    found = aligned(source, copy)
    committed = {offset for offset, _, committed in history.source if committed}
    seen: set[int] = set()
    doubles = [(at, n) for n, (at, _) in enumerate(history.copy) if at in committed and (at in seen or seen.add(at))]
    assert listed(found.doubles) == doubles
    assert (found.missing, found.unknown, found.reordered) == ((), (), 0)
    assert found.aborted == sum(at not in committed for at, _ in history.copy)
    if found.count:
        logs = Logs(REPLICA, Span(0, 100), Span(0, len(copy)), history.committed)
        assert of_compared(logs, source, found, Allowed()).offset == max(history.end, history.committed)
    else:
        assert history.end == 0


@given(histories(alike=True))
def test_of_records_that_are_alike_all_are_there_afterwards_in_order_and_as_few_too_many_as_can_be(
    history: History,
) -> None:
    source, copy = originals(history.source), [content for _, content in history.copy]
    found = aligned(source, copy)
    assert (found.missing, found.reordered) == ((), 0)
    committed = [content for _, content, committed in history.source if committed]
    union = copy + committed[found.begin + found.count :]
    assert is_subsequence(committed[found.begin :], union)
    there = Counter(at for at, _ in history.copy)
    doubled = sum(there[at] - 1 for at, _, committed in history.source if committed and there[at])
    assert len(listed(found.doubles)) + found.aborted <= doubled + sum(
        there[at] for at, _, committed in history.source if not committed
    )


@given(histories(), st.integers(0, 60))
def test_what_retention_has_taken_from_the_copy_is_not_missed(history: History, deleted: int) -> None:
    source, rest = originals(history.source), history.copy[deleted:]
    found = aligned(source, [content for _, content in rest])
    logs = Logs(REPLICA, Span(0, 100), Span(deleted, deleted + len(rest)), 0)
    decided = of_compared(logs, source, found, Allowed())
    if found.count and not decided.refusal:
        assert decided.offset == History(history.source, rest).end


def test_a_copy_that_begins_amid_the_source_begins_there() -> None:
    found = aligned(letters("abcdef"), "cde")
    assert (found.begin, found.count) == (2, 3)


def test_records_that_were_skipped_are_missing() -> None:
    found = aligned(letters("abcdef", 10), "abef")
    assert (found.count, found.missing, found.ahead_to) == (2, (12, 13), 16)


def test_records_that_came_in_another_order_are_there() -> None:
    found = aligned(letters("abcdef", 10), "abdec")
    assert (found.missing, found.ahead_to, found.reordered) == ((), 15, 2)


def test_a_batch_that_was_sent_twice_is_named_once() -> None:
    assert aligned(letters("abcdef"), "abcabcd").doubles == (Run(0, 3, 3),)


def test_records_before_the_first_one_of_the_window_are_older_and_others_are_unknown() -> None:
    found = aligned(letters("def", 3), "abcdeXf")
    assert (found.count, found.unknown) == (3, (5,))


def test_equal_records_of_one_key_end_as_they_do_at_the_source() -> None:
    """The copy ``k1 k2 k1 k2 k3`` does not hold the second ``k1`` of ``k1 k2 k3 k1``: it comes last there."""
    assert aligned(letters("abca"), "ababc").count == 3


def test_a_record_that_both_hold_once_tells_where_they_meet() -> None:
    assert letters("xxabx").first_single({b"x": 9, b"a": 1, b"b": 1}) == 2
    assert letters("xxabx").first_single({b"x": 9, b"a": 2, b"b": 1}) == 3
    assert letters("xxx").first_single({b"x": 9}) is None
    assert letters("xxx").first_single({}) == 0


def test_many_records_that_are_all_alike_are_aligned_at_once() -> None:
    found = aligned(letters("x" * 50_000), "x" * 60_000)
    assert (found.count, len(listed(found.doubles))) == (50_000, 10_000)
