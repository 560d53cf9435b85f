from hypothesis import given
from hypothesis import strategies as st

from appliance.kafka.records.records import Record
from appliance.logs.model.alignment import ANCHOR_RECORDS, Anchor, Search, anchor


def records(text: str, first: int = 0, times: str = "") -> list[Record]:
    """A record for each letter; its time is the letter of ``times`` at the same index, or its own letter."""
    return [Record(first + 2 * n, ord(times[n] if times else c), c.encode()) for n, c in enumerate(text)]


def letters(text: str) -> Anchor:
    """An anchor of these letters, with any times."""
    return Anchor(tuple(anchor([record]).prints[0] for record in records(text)), ord(text[0]), True)


def found(sought: Anchor, text: str) -> int | None:
    search = Search(sought)
    for record in records(text):
        if search.feed([record]):
            break
    return search.place


def test_an_anchor_is_all_of_the_first_time_and_one_more() -> None:
    assert len(anchor(records("xxxyz")).prints) == 4
    assert len(anchor(records("abcdef", times="111112")).prints) == 6
    assert len(anchor(records("a")).prints) == 1


def test_an_anchor_of_one_time_without_end_is_cut_off() -> None:
    assert len(anchor(records("x" * (ANCHOR_RECORDS + 5))).prints) == ANCHOR_RECORDS


def test_logs_that_begin_amid_the_same_record_again_and_again_do_not_begin_alike() -> None:
    assert not anchor(records("xxxy")).begins_like(anchor(records("xxxxxy")))
    assert anchor(records("xxxy")).begins_like(anchor(records("xxxyz")))
    assert anchor(records("xx")).begins_like(anchor(records("xxxy")))


def test_the_place_of_a_repeated_record_is_where_its_repetition_ends() -> None:
    assert found(anchor(records("xxy")), "axxxxxyz") == 2 * 4


def test_a_beginning_at_the_very_end_is_remembered() -> None:
    search = Search(letters("abc"))
    assert not search.feed(records("xxab", first=10))
    assert search.begun == 14
    assert not search.feed(records("x", first=18))
    assert search.begun is None


def test_of_several_places_of_an_incomplete_anchor_the_last_one_counts() -> None:
    assert found(anchor(records("xx")), "axxxxb") == 2 * 3
    assert found(anchor(records("xxb")), "axxbxxb") == 2 * 1


@given(st.text("ab", min_size=1, max_size=6), st.text("abc", max_size=40))
def test_an_anchor_is_found_where_a_text_is_found(sought: str, text: str) -> None:
    place = text.find(sought)
    assert found(letters(sought), text) == (None if place < 0 else 2 * place)


@given(st.text("ab", min_size=2, max_size=6), st.text("ab", max_size=20))
def test_the_begun_anchor_is_the_longest_beginning_at_the_end(sought: str, text: str) -> None:
    search = Search(letters(sought))
    if not search.feed(records(text)):
        length = next((n for n in range(len(sought), 0, -1) if text.endswith(sought[:n])), 0)
        assert search.begun == (2 * (len(text) - length) if length else None)
