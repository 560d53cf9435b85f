"""The code of a release."""

from pathlib import Path

import pytest

from tests.support.releases import archived


def test_a_commit_that_a_shallow_clone_lacks_is_named_with_the_command_that_fetches_it(tmp_path: Path) -> None:
    absent = "0" * 40
    with pytest.raises(AssertionError, match=rf"^commit {absent} is not in this clone: git fetch --unshallow$"):
        archived(absent, tmp_path / "code")
    assert not (tmp_path / "code").exists()
