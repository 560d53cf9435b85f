"""The content of a picture, and its file."""

import importlib.util
from pathlib import Path

import pytest

from appliance.errors import ProcessFailed, ToolMissing
from bench.__main__ import main
from bench.lib.plot import Line, draw, lines, require
from bench.lib.row import Row, as_json

ROWS = [
    Row("speed", "records/s", 1000, "MirrorMaker 2", 100, 12.0),
    Row("speed", "records/s", 1000, "record by record", 2000),
    Row("memory", "MB", 0, "limit", 300),
]
PNG = b"\x89PNG\r\n"


def test_rows_of_one_measure_share_our_bar_and_the_longest_bar_is_one() -> None:
    assert list(lines(ROWS)) == [
        Line("speed, records/s"),
        Line("ours", 0.5, "1,000", ours=True),
        Line("MirrorMaker 2", 0.05, "100   (ratio 10, goal 12)"),
        Line("record by record", 1.0, "2,000   (ratio 0.5)"),
        Line("memory, MB"),
        Line("ours", 0.0, "0", ours=True),
        Line("limit", 1.0, "300   (ratio 0)"),
    ]


def test_it_is_a_png_file(tmp_path: Path) -> None:
    draw(ROWS, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(PNG)


def test_several_results_become_one_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, rows in (("first.json", ROWS[:2]), ("second.json", ROWS[2:])):
        (tmp_path / name).write_text(as_json(rows, {"machine": "2 cores"}))
    results = [str(tmp_path / name) for name in ("first.json", "second.json")]
    assert main(["plot", *results, "--output", str(tmp_path / "both.png")]) == 0
    assert (tmp_path / "both.png").read_bytes().startswith(PNG)
    assert "memory, MB" in capsys.readouterr().out


def test_a_file_that_is_no_result_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text("{}")
    assert main(["plot", str(tmp_path / "other.json"), "--output", str(tmp_path / "picture.png")]) != 0
    assert f"{tmp_path / 'other.json'} is no result of a benchmark" in capsys.readouterr().err


def test_without_matplotlib_it_is_said_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ToolMissing, match="matplotlib is missing"):
        require(tmp_path / "picture.png")


def test_a_picture_for_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match="no directory"):
        require(tmp_path / "nowhere" / "picture.png")
