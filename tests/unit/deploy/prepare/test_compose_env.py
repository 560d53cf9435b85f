"""The lines of .env that are ours, among any others."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import SettingsError
from deploy.prepare.compose_env import EnvFile, prepared_env, write_env

OURS = "docker-compose.yml:prepared/docker-compose.yml"
OVERRIDE = "docker-compose.override.yml"


def prepared(folder: Path, text: str | None = None) -> EnvFile:
    if text is not None:
        (folder / ".env").write_bytes(text.encode())
    return prepared_env(folder, "kafka-1")


def values(file: EnvFile) -> list[str]:
    return [line for line in file.text.splitlines() if "COMPOSE_FILE" in line or "APPLIANCE_NETWORK" in line]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "A=1",
        "A=1\n",
        "A='1\n",
        "COMPOSE_FILE=\n",
        f"COMPOSE_FILE={OURS}\n",
        f"  export COMPOSE_FILE = '{OURS}'  # mine\nA=1\n",
        f"COMPOSE_FILE={OURS}:{OVERRIDE}\nAPPLIANCE_NETWORK=other\n",
        f"#COMPOSE_FILE=other\nCOMPOSE_FILE=\n# A\n\nCOMPOSE_FILE={OURS}\n",
    ],
)
def test_both_lines_are_there_once_prepared_and_a_second_time_nothing_changes(tmp_path: Path, text: str | None) -> None:
    file = prepared(tmp_path, text)
    lines = [line for line in values(file) if not line.startswith("#")]
    assert set(lines) == {f"COMPOSE_FILE={OURS}", "APPLIANCE_NETWORK=kafka-1"}
    assert write_env(tmp_path, file, dry=False).changed
    again = prepared(tmp_path)
    assert (again.text, again.new_lines) == (file.text, ())
    assert not write_env(tmp_path, again, dry=False).changed


@given(before=st.lists(st.sampled_from(["A=1", "#", "", "B='x y'", 'C="$A"']), max_size=4), end=st.sampled_from("\n\r"))
def test_the_users_lines_stay_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], end: str
) -> None:
    line_end = {"\n": "\n", "\r": "\r\n"}[end]
    text = line_end.join([*before, f"COMPOSE_FILE={OURS}", "SECRET=hunter2"])
    folder = tmp_path_factory.mktemp("link")
    file = prepared(folder, text)
    assert file.text.startswith(text)
    assert write_env(folder, file, dry=False).lines == file.new_lines
    assert (folder / ".env").read_bytes() == file.text.encode()
    assert not [line for line in file.new_lines if "hunter2" in line]


def test_files_of_the_users_own_follow_ours_and_the_overrides_that_there_are(tmp_path: Path) -> None:
    (tmp_path / OVERRIDE).touch()
    text = f"COMPOSE_FILE={OURS}:compose.override.yml:mine.yml\n"
    assert f"COMPOSE_FILE={OURS}:{OVERRIDE}:mine.yml" in values(prepared(tmp_path, text))
    by_semicolon = f"COMPOSE_PATH_SEPARATOR=;\nCOMPOSE_FILE={OURS.replace(':', ';')};mine.yml\n"
    assert f"COMPOSE_FILE={OURS};{OVERRIDE};mine.yml".replace(":", ";") in values(prepared(tmp_path, by_semicolon))


@pytest.mark.parametrize(
    "listed", ["mine.yml", f"mine.yml:{OURS}", "docker-compose.yml", "prepared/docker-compose.yml"]
)
def test_a_list_that_begins_otherwise_is_refused(tmp_path: Path, listed: str) -> None:
    with pytest.raises(
        SettingsError, match=rf"^\.env: COMPOSE_FILE={listed}: expected {OURS} first, and then files of"
    ):
        prepared(tmp_path, f'COMPOSE_FILE="{listed}"\r\n')


def test_what_is_no_text_or_no_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=1\n\xff")
    with pytest.raises(SettingsError, match=r"^\.env: expected UTF-8 text, byte 4 is none$"):
        prepared(tmp_path)
    (tmp_path / ".env").unlink()
    (tmp_path / ".env").mkdir()
    with pytest.raises(SettingsError, match=r"^\.env: cannot be read or written: Is a directory$"):
        prepared(tmp_path)


def test_a_file_that_may_not_be_changed_is_one_clear_line(tmp_path: Path) -> None:
    file = prepared(tmp_path, "A=1\n")
    (tmp_path / ".env").unlink()
    (tmp_path / ".env").symlink_to("/proc/version")  # read-only for root as well
    with pytest.raises(SettingsError, match=r"^\.env: cannot be read or written: "):
        write_env(tmp_path, file, dry=False)


def test_the_mode_and_a_link_to_the_file_stay_and_a_new_file_is_for_all_who_may_use_docker(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("A=1\n")
    (tmp_path / "elsewhere").chmod(0o640)
    (tmp_path / ".env").symlink_to("elsewhere")
    write_env(tmp_path, prepared(tmp_path), dry=False)
    assert (tmp_path / ".env").is_symlink()
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o640
    assert "COMPOSE_FILE" in (tmp_path / "elsewhere").read_text()

    (tmp_path / ".env").unlink()
    umask = os.umask(0o077)
    try:
        assert write_env(tmp_path, prepared(tmp_path), dry=False).state == "new"
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o644


def test_a_dry_run_touches_nothing(tmp_path: Path) -> None:
    assert write_env(tmp_path, prepared(tmp_path), dry=True).state == "new"
    assert list(tmp_path.iterdir()) == []


def test_only_another_list_in_the_shell_hides_it(tmp_path: Path) -> None:
    file = prepared(tmp_path)
    assert file.hidden_by({}) == file.hidden_by({"COMPOSE_FILE": OURS}) == []
    assert file.hidden_by({"COMPOSE_FILE": "/srv/other.yml"})[0].endswith(": unset COMPOSE_FILE")


@pytest.mark.parametrize(
    "listed", [f"{OURS}:a\\x.yml", f"{OURS}:my file.yml", f"'{OURS}:my file #1.yml'", f"'{OURS}:a#b #c.yml'"]
)
def test_case_1414_a_file_of_the_users_own_is_kept_whatever_its_name(tmp_path: Path, listed: str) -> None:
    # A backslash ended in a traceback, and in quotes what follows " #" was lost.
    text = f"COMPOSE_FILE={listed}\nAPPLIANCE_NETWORK=kafka-1\n"
    assert prepared(tmp_path, text).text == text
    in_double = text.replace("'", '"') + "B=1\n"
    assert prepared(tmp_path, in_double).text == f"{text}B=1\n"


def test_case_1415_another_separator_in_the_shell_is_warned_of(tmp_path: Path) -> None:
    # Compose took our list for the name of one file.
    file = prepared(tmp_path)
    assert file.hidden_by({"COMPOSE_PATH_SEPARATOR": ":"}) == []
    assert file.hidden_by({"COMPOSE_PATH_SEPARATOR": ";"})[0].endswith(": unset COMPOSE_PATH_SEPARATOR")
