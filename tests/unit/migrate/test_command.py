"""``appliance import`` on files: folders, modes, and what is printed."""

import asyncio
import json
import stat
from pathlib import Path

import pytest

from appliance import cli
from appliance.errors import SettingsError
from appliance.migrate.command import write_folders
from appliance.settings.env_file import load, read_settings
from appliance.settings.role import EVERY_ROLE
from tests.support.imports import MIRROR_MAKER, REPLICATOR

NAMED = MIRROR_MAKER.replace("127.0.31.1", "b0.source.example").replace("127.0.32.1", "b0.target.example")


@pytest.fixture
def mm2(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(NAMED)
    return path


def run(*arguments: object) -> int:
    return cli.main(["import", *map(str, arguments)])


def fill_in(path: Path, **variables: str) -> None:
    text = path.read_text()
    for name, value in variables.items():
        assert f"export {name}=''" in text
        text = text.replace(f"export {name}=''", f"export {name}='{value}'")
    path.write_text(text)


def test_both_directions_are_accepted_by_every_part_once_they_are_filled_in(
    mm2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("mm2", mm2, "--out", tmp_path / "links") == 0
    printed = capsys.readouterr().out
    secrets = set()
    for folder in ("kafka-cloud-replicator-source-target", "kafka-cloud-replicator-target-source"):
        path = tmp_path / "links" / folder / "setenv.sh"
        assert [stat.S_IMODE(there.stat().st_mode) for there in (path, path.parent)] == [0o600, 0o700]
        with pytest.raises(SettingsError) as refused:
            read_settings(path, EVERY_ROLE, {})
        assert all(f"    {fault.partition(': ')[2]}" in printed.splitlines() for fault in refused.value.faults)
        fill_in(path, SOURCE_SIDE_TUNNEL_IP="203.0.113.7", DESTINATION_SIDE_TUNNEL_IP="198.51.100.9")
        read_settings(path, EVERY_ROLE, {})
        secrets.add(load(path, {})["SHARED_SECRET"])
    assert len(secrets) == 2
    assert not any(secret in printed for secret in secrets)


def test_every_key_is_listed_once(mm2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("mm2", mm2, "--out", tmp_path)
    listed = [line.split(":")[0].split(" -> ")[0].strip() for line in capsys.readouterr().out.splitlines()]
    for line in NAMED.splitlines():
        key = line.partition("=")[0].strip()
        assert not key or key.startswith("#") or listed.count(key) == 1, key


def test_the_outcomes_are_the_same_as_json(mm2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("mm2", mm2, "--out", tmp_path / "one", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    run("mm2", mm2, "--out", tmp_path / "other")
    lines = capsys.readouterr().out
    assert [Path(link["file"]).is_file() for link in told["links"]] == [True, True]
    assert all(f"    {fault}" in lines for link in told["links"] for fault in link["faults"])
    assert all(f"  {key['key']}" in lines and key["verdict"].capitalize() in lines for key in told["keys"])


def test_a_replicators_password_is_written_and_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "replicator.json"
    file.write_text(REPLICATOR)
    assert run("replicator", file, "--out", tmp_path, "--source", "orange", "--destination", "grape") == 0
    assert "quoted" not in capsys.readouterr().out
    path = tmp_path / "kafka-cloud-replicator-orange-grape" / "setenv.sh"
    assert load(path, {})["SOURCE_API_SECRET"] == "pa$$ \"quoted\" 'word'"


def test_a_folder_that_exists_is_not_overwritten_and_no_other_is_written(
    mm2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "kafka-cloud-replicator-target-source"
    there.mkdir()
    assert run("mm2", mm2, "--out", tmp_path) == 2
    assert f"{there}: exists, and is not overwritten" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == [there.name, mm2.name]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SettingsError, match="cannot be written: No space left on device"):
        write_folders(tmp_path, {"folder": "text"})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("mm2", tmp_path / "none") == 2
    assert f"{tmp_path / 'none'}: no such file or directory" in capsys.readouterr().err


def test_a_key_that_is_given_twice_is_told(mm2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mm2.write_text(NAMED + "topics = orders\n")
    run("mm2", mm2, "--out", tmp_path)
    assert "  topics: given more than once, of which the last counts, as in Java" in capsys.readouterr().out


def test_the_program_is_asked_for() -> None:
    assert asyncio.run(asyncio.to_thread(run)) == 2
