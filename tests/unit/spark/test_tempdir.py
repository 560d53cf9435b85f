import tempfile
from pathlib import Path

import pytest

from appliance.spark.tempdir import short_name, tempdir


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_goes_with_all_that_is_in_it(temporary: Path) -> None:
    with tempdir("replicator-a") as directory:
        (directory / "file").touch()
        assert directory.parent == temporary
    assert list(temporary.iterdir()) == []


def test_directories_of_dead_processes_are_removed(temporary: Path) -> None:
    left = temporary / "replicator-a-dead"
    left.mkdir()
    (left / "file").touch()
    with tempdir("replicator-a") as directory:
        assert list(temporary.iterdir()) == [directory]


def test_directories_of_living_processes_and_of_others_are_left_alone(temporary: Path) -> None:
    other = temporary / "replicator-b-dead"
    other.mkdir()
    target = temporary / "target"
    target.mkdir()
    link = temporary / "replicator-a-link"
    link.symlink_to(target)
    with tempdir("replicator-a") as first, tempdir("replicator-a") as second:
        assert first != second
        assert set(temporary.iterdir()) == {other, target, link, first, second}


def test_a_process_has_the_lowest_number_that_is_free_and_the_next_one_takes_it_over(temporary: Path) -> None:
    (temporary / "replicator-a-0").mkdir()  # a killed process has left it
    with tempdir("replicator-a") as first, tempdir("replicator-a") as second:
        assert [first.name, second.name] == ["replicator-a-0", "replicator-a-1"]
    with tempdir("replicator-a") as again:
        assert again.name == "replicator-a-0"


def test_a_name_with_room_for_sockets_is_its_own_or_leads_there(temporary: Path) -> None:
    long = temporary / ("x" * 100)
    long.mkdir()
    for directory in (Path("/tmp"), long):
        with short_name(directory) as name:
            assert name.samefile(directory)
            assert len(str(name)) <= 60
    assert not name.parent.exists()


def test_what_a_killed_process_has_left_beside_is_removed(temporary: Path) -> None:
    long = temporary / ("x" * 100)
    long.mkdir()
    left = Path(tempfile.mkdtemp(prefix="spark-", dir="/tmp"))
    (left / "tmp").symlink_to(temporary / "gone")
    with short_name(long):
        assert not left.exists()
