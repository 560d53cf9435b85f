"""The log that is written directly, and the rows of the start benchmark."""

import itertools
from pathlib import Path

import pytest

from appliance.kafka.records.batch import CONTROL, Batch, split, verify
from appliance.kafka.records.committed import committed
from appliance.kafka.records.records import unpack
from appliance.link.model.checkpoint_records import newest
from bench.__main__ import main
from bench.cases.start import Taken, Trial, naming, rows
from bench.lib import positions_log
from bench.lib.row import Row


def batches(directory: Path) -> list[Batch]:
    return [batch for file in sorted(directory.glob("*.log")) for batch in split(file.read_bytes())]


def test_a_log_holds_every_commits_marker_and_the_newest_commits_positions(tmp_path: Path) -> None:
    positions_log.write(tmp_path, 60_000, 100)
    found = batches(tmp_path)
    for batch in found:
        verify(batch)
    markers = [batch.header.base_offset for batch in found if batch.header.attributes & CONTROL]
    assert markers == list(range(1, 120_000, 2))
    positions = list(committed(found, ()))
    assert [batch.header.base_offset for batch in positions] == list(range(119_800, 120_000, 2))
    ((_, last),) = newest(unpack(positions[-1], 0))
    assert isinstance(last, tuple)
    assert (last[0], getattr(last[1], "next_offset", None)) == (("bench", 0), 59_999)


def test_each_segment_is_named_after_the_offset_that_follows_the_one_before(tmp_path: Path) -> None:
    positions_log.write(tmp_path, 60_000, 100)
    files = sorted(tmp_path.glob("*.log"))
    assert len(files) == 3
    assert all(file.stat().st_size <= 4 * 1024 * 1024 for file in files)
    for before, file in itertools.pairwise(files):
        *_, last = split(before.read_bytes())
        assert int(file.stem) == last.header.last_offset + 1
    assert positions_log.size(tmp_path) == sum(len(batch.data) for batch in batches(tmp_path))


def test_a_topic_is_cleaned_when_the_cleaner_has_gone_past_its_begin(tmp_path: Path) -> None:
    assert positions_log.cleaned(tmp_path) == set()
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n3\none 0 5\ntwo 0 0\nthree 1 5\n")
    assert positions_log.cleaned(tmp_path) == {"one"}
    positions_log.clean_again(tmp_path, ["one"])
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n2\ntwo 0 0\nthree 1 5\n"


def test_medians_stand_beside_those_behind_few_commits() -> None:
    few = Trial(naming("few"), 1_000, "60000", 1_000, 0, [Taken(0.2, 0.1)], [Taken(0.1, 0.05)])
    day = Trial(naming("day"), 9_000, "86400000", 10, 8_000_000, [Taken(9, 8)] * 2 + [Taken(20, 20)], [Taken(7, 6)])
    link = Trial(naming("link"), 9_000, "60000", 10, 4_000_000, [Taken(0.4, 0.3)], [Taken(0.2, 0.1)])
    assert rows(day, link, few) == [
        Row("lane's start, markers kept 86,400 s", "s", 9, "1,000 commits", 0.2),
        Row("lane's start, markers kept 86,400 s", "s of processor", 8, "1,000 commits", 0.1),
        Row("status, markers kept 86,400 s", "s", 7, "1,000 commits", 0.1),
        Row("status, markers kept 86,400 s", "s of processor", 6, "1,000 commits", 0.05),
        Row("lane's start, markers kept 60 s", "s", 0.4, "1,000 commits", 0.2),
        Row("lane's start, markers kept 60 s", "s of processor", 0.3, "1,000 commits", 0.1),
        Row("status, markers kept 60 s", "s", 0.2, "1,000 commits", 0.1),
        Row("status, markers kept 60 s", "s of processor", 0.1, "1,000 commits", 0.05),
        Row("log of 9,000 commits, markers kept 60 s", "MB", 4, "markers kept 86,400 s", 8),
    ]


@pytest.mark.parametrize("number", ["0", "1000", "few"])
def test_no_more_commits_than_the_few_are_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["start", f"--commits={number}"])
    assert ended.value.code == 2
    assert "argument --commits: expected" in capsys.readouterr().err
