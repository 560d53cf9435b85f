"""The index of the numbered cases."""

from tests.cases import INDEX, cases, index


def test_the_index_lists_every_case_with_its_cause() -> None:
    """After a change of a case: ``python -m tests.cases``."""
    assert INDEX.read_text() == index(cases())
