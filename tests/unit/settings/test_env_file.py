import contextlib
import re
import subprocess
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
    assert fault.startswith(f"{path}:4: expected export ")


@pytest.mark.parametrize("value", ['"$(cat /run/secrets/x)"', '"${A:?}"', "$X", "`cat /run/secrets/x`"])
def test_a_secret_that_a_command_would_print_is_refused_with_the_way_to_take_it_from_a_file(
    path: Path, value: str
) -> None:
    [fault] = faults(path, f"export SHARED_SECRET={value}\n")
    assert fault.startswith(f"{path}:1: expected export SHARED_SECRET='value' in single quotes: ")
    assert fault.endswith("; what a command would print: SHARED_SECRET_FILE=/path of a file that holds it")
    assert "SECRET_FILE" not in faults(path, f"export SOURCE_API_KEY={value}\n")[0]


def test_a_file_with_the_lines_of_windows_has_one_fault(path: Path) -> None:
    path.write_bytes(b"# one\r\nexport LANES='1'\r\n\r\nexport TASKS='1'\r\n")
    with pytest.raises(SettingsError) as refusal:
        load(path, {})
    [fault] = refusal.value.faults
    assert fault.startswith(f"{path}:2: expected lines that end as on Unix: here is a carriage return: sed -i ")
    cured(fault)
    assert load(path, {}) == {"LANES": "1", "TASKS": "1"}


def cured(fault: str) -> None:
    """Run the command at the end of a fault."""
    subprocess.run(["sh", "-c", f"sed -i {fault.partition(': sed -i ')[2]}"], check=True)


@pytest.mark.parametrize(
    ("text", "character"),
    [
        ("\ufeff# one\nexport LANES='3'\n", "U+FEFF (byte order mark)"),
        ("export LANES=\u20183\u2019\n", "U+2018 (left single quotation mark)"),
        ("export LANES=\u201c3\u201d\n", "U+201C (left double quotation mark)"),
        ("export\u00a0LANES='3'\n", "U+00A0 (no-break space)"),
        ("export LANES=3\u00a0\n", "U+00A0 (no-break space)"),
        ("export LANES=3\u200b\n", "U+200B (zero width space)"),
    ],
)
def test_case_1441_a_character_that_nobody_sees_is_named_with_the_command_that_removes_it(
    path: Path, text: str, character: str
) -> None:
    # The fault was "expected export LANES='value'", for a line that looked just like that.
    faulty = faults(path, text)
    assert f": here is {character}: sed -i " in faulty[0]
    for _ in range(2):  # the opening quote, and then the closing one
        with contextlib.suppress(SettingsError):
            load(path, {})
            break
        cured(faults(path, path.read_text())[0])
    assert load(path, {}) == {"LANES": "3"}


@pytest.mark.parametrize("line", ["'it's'", "'it's here'", "it's"])
def test_case_1442_a_value_with_an_apostrophe_is_refused_with_the_form_that_holds_it(path: Path, line: str) -> None:
    # The fault spoke of a quote that is not closed, or of a shell that would read something else.
    [fault] = faults(path, f"export SHARED_SECRET={line}\n")
    assert fault.endswith(r"; an apostrophe in the value is written '\''")
    assert loaded(path, "export SHARED_SECRET='it'\\''s here'\n") == {"SHARED_SECRET": "it's here"}


def test_the_fault_of_a_value_says_where_the_value_is_set(path: Path) -> None:
    text = write_settings(path, REQUIRED | {"LANES": "many", "SOURCE_API_KEY": ""}).read_text()
    number = 1 + text.splitlines().index("export LANES=many")
    with pytest.raises(SettingsError) as refusal:
        read_settings(path, EVERY_ROLE, {"TASKS": "few"})
    assert {fault.partition("=")[0] for fault in refusal.value.faults if "=" in fault} == {
        f"{path}:{number}: LANES",
        "environment: TASKS",
    }
    (missing,) = (fault for fault in refusal.value.faults if ": missing: " in fault)
    assert re.match(rf"{path}:[0-9]+: SOURCE_API_KEY: ", missing)


@pytest.mark.parametrize("value", ["b0.orange\u200b:9092", "\u2060b0.orange:9092", "b0.orange:9092\ufeff"])
def test_case_1443_an_invisible_character_in_a_value_is_named(path: Path, value: str) -> None:
    # "expected host:port" stood behind what looked like a host and a port.
    write_settings(path, REQUIRED | {"SOURCE_BROKER_SERVERS": value, "SOURCE_API_SECRET": "x\u200by\u200b"})
    with pytest.raises(SettingsError) as refusal:
        read_settings(path, EVERY_ROLE, {})
    told = " ".join(refusal.value.faults)
    assert told.count("which is invisible") == 2
    assert "SOURCE_API_SECRET: expected text without U+200B (zero width space)" in told
    write_settings(path, REQUIRED | {"SOURCE_API_SECRET": "x\u200by"})
    assert read_settings(path, EVERY_ROLE, {}).source.api_secret.reveal() == "x\u200by"


@pytest.mark.parametrize("character", ["\u00a0", "\u2007", "\u3000", "\u2028"])
@pytest.mark.parametrize("form", ["{}x", "x{}", " x{} ", "{}"])
def test_case_1493_an_invisible_character_at_the_end_of_a_secret_is_named(
    path: Path, character: str, form: str
) -> None:
    # Blanks of Unicode were removed before the look, and the login failed.
    write_settings(path, REQUIRED | {"DESTINATION_API_SECRET": form.format(character)})
    with pytest.raises(SettingsError) as refusal:
        read_settings(path, EVERY_ROLE, {})
    [fault] = refusal.value.faults
    assert f"DESTINATION_API_SECRET: expected text without U+{ord(character):04X} " in fault
    for name in ("SOURCE_BROKER_SERVERS", "REPLICA_TOPICS_SOURCE_REGEX", "SOURCE_API_KEY", "SOURCE_SIDE_TUNNEL_IP"):
        write_settings(path, REQUIRED | {name: f"{REQUIRED[name][:3]}{character}{REQUIRED[name][3:]}"})
        with pytest.raises(SettingsError, match=rf"{name}=.* expected text without U\+"):
            read_settings(path, EVERY_ROLE, {})


def test_case_1493_a_cure_is_for_its_own_line_and_a_control_character_has_its_place(path: Path) -> None:
    # The cure of one line broke the apostrophe of another one; of a control character nothing was told.
    cured(faults(path, "export SOURCE_API_SECRET='it\u2019s'\nexport LANES='3\u2019\n")[0])
    assert load(path, {}) == {"SOURCE_API_SECRET": "it\u2019s", "LANES": "3"}
    [fault] = faults(path, "# one\nexport LANES='1\r2'\n")
    assert fault == (
        f"{path}:2: expected export LANES='value' without control characters: here is U+000D, character 16 of the line"
    )


def test_case_1493_a_variable_is_set_once(path: Path) -> None:
    # The last of the lines counted, whichever the user looked at.
    twice = "export LANES='1'\nexport TASKS='1'\n\nLANES='1'\nexport LANES=2\n"
    assert faults(path, twice) == tuple(
        f"{path}:{at}: LANES: set again: line 1 has it too: remove one" for at in (4, 5)
    )


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
    assert faults(path, f"export {name}=1\n") == (f"{path}:1: {name}: no such variable: did you mean {nearest}?",)


def test_a_name_that_is_gone_is_reported_once_and_likened_to_none(path: Path) -> None:
    write_settings(path, REQUIRED | {"TUNNEL_SSH_USER": "ann"})
    with pytest.raises(SettingsError) as refusal:
        read_settings(path, EVERY_ROLE, {})
    assert refusal.value.faults == (f"{path}:{len(REQUIRED) + 1}: TUNNEL_SSH_USER: gone: {GONE['TUNNEL_SSH_USER']}",)


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
        f"{path}:14: TUNEL_PORT: no such variable: did you mean TUNNEL_PORT?",
        f"{path}:16: expected export TASKS='value' on one line: its quote is not closed",
        f"{path}:15: LANES=many: expected a whole number from 0 to 1000",
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
    assert [fault.partition(": expected")[0] for fault in refusal.value.faults] == [f"{path}:14"]
