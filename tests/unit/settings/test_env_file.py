import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import SettingsError
from appliance.settings.env_file import assignment, load, read_settings
from appliance.settings.role import EVERY_ROLE
from appliance.settings.variables import GONE
from tests.support.settings import REQUIRED, write_settings


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a file that only its owner may read."""
    path = tmp_path / "setenv.sh"
    path.touch(mode=0o600)
    return path


def loaded(path: Path, text: str) -> dict[str, str]:
    path.write_text(text)
    return load(path, {})


def faults(path: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as refusal:
        loaded(path, text)
    return refusal.value.faults


@pytest.mark.parametrize("line", ["export LANES=3 4", "export LANES='3", "export LANES=$N", "export LANES", "= 3"])
def test_a_line_that_a_shell_would_read_otherwise_is_a_fault_with_its_number(path: Path, line: str) -> None:
    [fault] = faults(path, f"# one\n\n\n{line}\n# five\nexport TASKS=1\n")
    assert fault.startswith("line 4: expected export ")


@pytest.mark.parametrize("value", ['"$(cat /run/secrets/x)"', '"${A:?}"', "$X", "`cat /run/secrets/x`"])
def test_a_secret_that_a_command_would_print_is_refused_with_the_way_to_take_it_from_a_file(
    path: Path, value: str
) -> None:
    [fault] = faults(path, f"export SHARED_SECRET={value}\n")
    assert fault.startswith("line 1: expected export SHARED_SECRET='value' in single quotes: ")
    assert fault.endswith("; what a command would print: SHARED_SECRET_FILE=/path of a file that holds it")
    assert "SECRET_FILE" not in faults(path, f"export SOURCE_API_KEY={value}\n")[0]


def test_a_file_with_the_lines_of_windows_has_one_fault(path: Path) -> None:
    path.write_bytes(b"# one\r\nexport LANES='1'\r\n\r\nexport TASKS='1'\r\n")
    with pytest.raises(SettingsError) as refusal:
        load(path, {})
    assert refusal.value.faults == ("line 2: expected lines that end as on Unix: here is a carriage return",)


def test_a_fault_of_a_line_does_not_show_its_value(path: Path) -> None:
    [fault] = faults(path, "export SHARED_SECRET=hun ter2\n")
    assert "ter2" not in fault


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("SOURCE_CLUSTERID", "SOURCE_CLUSTER_ID"),
        ("SHARED_SECRETS", "SHARED_SECRET"),
        ("source_api_key", "SOURCE_API_KEY"),
        ("LANE", "LANES"),
        ("TUNNEL_PROT", "TUNNEL_PORT"),
        ("DESTINATION_KEY", "DESTINATION_API_KEY"),
        ("SHARED_SECRETS_FILE", "SHARED_SECRET_FILE"),
        ("SOURCE_CLUSTER_ID_FILE", "SOURCE_CLUSTER_ID"),
    ],
)
def test_a_name_that_is_nearly_ours_is_a_fault_with_the_nearest(path: Path, name: str, nearest: str) -> None:
    assert faults(path, f"export {name}=1\n") == (f"line 1: {name}: no such variable: did you mean {nearest}?",)


def test_a_name_that_is_gone_is_reported_once_and_likened_to_none(path: Path) -> None:
    write_settings(path, REQUIRED | {"TUNNEL_SSH_USER": "ann"})
    with pytest.raises(SettingsError) as refusal:
        read_settings(path, EVERY_ROLE, {})
    assert refusal.value.faults == (f"TUNNEL_SSH_USER: gone: {GONE['TUNNEL_SSH_USER']}",)


def test_a_name_that_is_not_ours_is_let_be(path: Path) -> None:
    assert loaded(path, "export HTTPS_PROXY=http://proxy:3128\nexport JAVA_HOME=/opt/java\nexport LANES=3\n")


def test_the_environment_of_the_process_wins(path: Path) -> None:
    path.write_text("export LANES=3\nexport TASKS=2\n")
    assert load(path, {"LANES": "5", "HOME": "/root"}) == {"LANES": "5", "TASKS": "2"}


def test_a_secret_of_the_process_wins_over_the_file_in_whichever_way_either_has_it(path: Path) -> None:
    path.write_text("export SHARED_SECRET='a'\nexport SOURCE_API_SECRET_FILE='/b'\n")
    process = {"SHARED_SECRET_FILE": "/run/secrets/shared", "SOURCE_API_SECRET": "d"}
    assert load(path, process) == {"SHARED_SECRET_FILE": "/run/secrets/shared", "SOURCE_API_SECRET": "d"}


def test_a_missing_file_gives_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no such file or directory: cp setenv\.sh\.template .* && chmod 600 "):
        read_settings(tmp_path / "setenv.sh", EVERY_ROLE, {})


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_that_others_may_read_or_write_is_refused_with_the_command_that_closes_it(path: Path, mode: int) -> None:
    write_settings(path, REQUIRED)
    path.chmod(mode)
    with pytest.raises(SettingsError) as refusal:
        read_settings(path, EVERY_ROLE, {})
    assert refusal.value.faults == (f"{path}: holds secrets, and others may read it: chmod 600 {path}",)
    path.chmod(0o600)
    assert read_settings(path, EVERY_ROLE, {})


def test_a_file_that_is_not_text_is_a_fault(path: Path) -> None:
    path.write_bytes(b"export LANES=\xff\n")
    with pytest.raises(SettingsError, match="expected UTF-8 text, byte 13"):
        load(path, {})


def test_a_directory_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Is a directory"):
        load(tmp_path, {})


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_a_written_value_is_read_as_it_stood(value: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "setenv.sh"
        path.write_text(assignment("SOURCE_API_SECRET", value))
        assert load(path, {}) == {"SOURCE_API_SECRET": value}


@pytest.mark.parametrize("value", ["it's", "$HOME `id` #1", 'say "yes"', 'it\'s "it"', "back\\", " ", "\t"])
def test_a_value_is_written_in_quotes(path: Path, value: str) -> None:
    assert loaded(path, assignment("SOURCE_API_SECRET", value)) == {"SOURCE_API_SECRET": value}


@pytest.mark.parametrize("value", ["hunter2\r", "hunter2\n", "hunter\0"])
def test_a_value_that_no_line_holds_is_a_fault_that_does_not_show_it(value: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        assignment("SOURCE_API_SECRET", value)
    assert refusal.value.faults == ("SOURCE_API_SECRET: expected one line of text without control characters",)


def test_faults_of_lines_and_of_values_are_reported_together(path: Path) -> None:
    good = write_settings(path, REQUIRED).read_text()
    path.write_text(f"{good}export TUNEL_PORT=1\nexport LANES=many\nexport TASKS='0\n")
    with pytest.raises(SettingsError) as refusal:
        read_settings(path, EVERY_ROLE, {})
    assert refusal.value.faults == (
        "line 14: TUNEL_PORT: no such variable: did you mean TUNNEL_PORT?",
        "line 16: expected export TASKS='value' on one line: its quote is not closed",
        "LANES=many: expected a whole number from 0 to 1000",
    )


def test_file_and_process_together_make_the_settings(path: Path) -> None:
    write_settings(path, REQUIRED)
    settings = read_settings(path, EVERY_ROLE, {"SOURCE_CLUSTER_ID": "lemon"})
    assert settings.tunnel.link == "lemon-grape"
    assert settings.destination.api_secret.reveal() == REQUIRED["DESTINATION_API_SECRET"]


def test_a_line_that_cannot_be_read_is_not_called_missing_too(path: Path) -> None:
    path.write_text(write_settings(path, REQUIRED).read_text() + "export SHARED_SECRET=$X\n")
    with pytest.raises(SettingsError) as refusal:
        read_settings(path, EVERY_ROLE, {})
    assert [fault[:16] for fault in refusal.value.faults] == ["line 14: expecte"]
