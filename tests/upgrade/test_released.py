"""The kept names of the last release are those of its commit."""

from pathlib import Path

import pytest

from tests.releases import RELEASED, released


@pytest.mark.release  # needs this repository's history
def test_the_kept_names_are_those_that_the_code_of_the_last_release_lists(tmp_path: Path) -> None:
    assert RELEASED.read_text() == released(tmp_path)
