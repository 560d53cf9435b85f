"""Fingerprints differ for all records between which a consumer sees a difference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.reading import fingerprint

CONTENT = st.none() | st.binary(max_size=8)
RECORDS = st.tuples(
    CONTENT, CONTENT, st.lists(st.tuples(st.text(max_size=4), CONTENT), max_size=3), st.integers(-1, 2**62)
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((None, b"v", [], 1), (b"", b"v", [], 1)),
        ((b"k", None, [], 1), (b"k", b"", [], 1)),
        ((b"k", b"v", [], 1), (b"k", b"v", [], 2)),
        ((b"kv", b"", [], 1), (b"k", b"v", [], 1)),
        ((b"k", b"v", [], 1), (b"k", b"v", [("a", None)], 1)),
        ((b"k", b"v", [("a", b"")], 1), (b"k", b"v", [("a", None)], 1)),
        ((b"k", b"v", [("a", b"1"), ("a", b"2")], 1), (b"k", b"v", [("a", b"2"), ("a", b"1")], 1)),
        ((b"k", b"v", [("ab", b"c")], 1), (b"k", b"v", [("a", b"bc")], 1)),
    ],
)
def test_records_that_differ_a_little_have_different_fingerprints(one, other):
    assert fingerprint(*one) != fingerprint(*other)


@given(RECORDS, RECORDS)
def test_fingerprints_are_equal_when_records_are(one, other):
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)


def test_a_fingerprint_fits_in_64_bits():
    assert 0 <= fingerprint(None, None, [], -1) < 2**64
