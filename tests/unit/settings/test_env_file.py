import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import SettingsError
from appliance.settings.env_file import assignment, load, read_settings
from appliance.settings.role import EVERY_ROLE
from tests.support.settings import REQUIRED


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "setenv.sh"


def loaded(path: Path, text: str) -> dict[str, str]:
    path.write_text(text)
    return load(path, {})


def faults(path: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as refusal:
        loaded(path, text)
    return refusal.value.faults


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("export SOURCE_API_SECRET='pa$$w0rd'", "pa$$w0rd"),
        ('export SOURCE_API_SECRET="pa$$w0rd"', "pa$$w0rd"),
        ("export SOURCE_API_SECRET='${HOME} $(id) `id`'", "${HOME} $(id) `id`"),
        ("export SOURCE_API_SECRET='a#b' # a comment", "a#b"),
        ("export SOURCE_API_SECRET=a/b+c==", "a/b+c=="),
        (r"export SOURCE_API_SECRET='back\slash'", r"back\slash"),
        ("SOURCE_API_SECRET=plain", "plain"),
        ("  export   SOURCE_API_SECRET='x'  ", "x"),
        ("export SOURCE_API_SECRET=", ""),
        ("export SOURCE_API_SECRET='zwölf'", "zwölf"),
    ],
)
def test_a_line_is_read_without_interpolation(path: Path, line: str, value: str) -> None:
    assert loaded(path, f"#!/bin/bash\n\n{line}\n")["SOURCE_API_SECRET"] == value


@pytest.mark.parametrize(
    "line",
    [
        "export LANES = 3",
        "export LANES=3 4",
        "export LANES='3",
        "export LANES=it's",
        r"export LANES='a\\b'",
        r'export LANES="a\nb"',
        r"export LANES=a\b",
        "export LANES",
        "if true; then",
        "= 3",
    ],
)
def test_a_line_that_a_shell_would_read_otherwise_is_a_fault_with_its_number(path: Path, line: str) -> None:
    [fault] = faults(path, f"# one\n\n\n{line}\n# five\nexport TASKS=1\n")
    assert fault.startswith("line 4: expected export ")


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
    ],
)
def test_a_name_that_is_nearly_ours_is_a_fault_with_the_nearest(path: Path, name: str, nearest: str) -> None:
    assert faults(path, f"export {name}=1\n") == (f"line 1: {name}: no such variable: did you mean {nearest}?",)


def test_a_name_that_is_not_ours_is_let_be(path: Path) -> None:
    assert loaded(path, "export HTTPS_PROXY=http://proxy:3128\nexport JAVA_HOME=/opt/java\nexport LANES=3\n")


def test_the_environment_of_the_process_wins(path: Path) -> None:
    path.write_text("export LANES=3\nexport TASKS=2\n")
    assert load(path, {"LANES": "5", "HOME": "/root"}) == {"LANES": "5", "TASKS": "2"}


def test_a_missing_file_says_what_to_copy(path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no such file: copy setenv\.sh\.template"):
        load(path, {})


def test_a_file_that_is_not_text_is_a_fault(path: Path) -> None:
    path.write_bytes(b"export LANES=\xff\n")
    with pytest.raises(SettingsError, match="expected UTF-8 text, byte 13"):
        load(path, {})


def test_a_directory_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Is a directory"):
        load(tmp_path, {})


@given(st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"])))
def test_a_written_value_is_read_as_it_stood(value: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "setenv.sh"
        path.write_text(assignment("SOURCE_API_SECRET", value))
        assert load(path, {}) == {"SOURCE_API_SECRET": value}


@pytest.mark.parametrize("value", ["it's", "$HOME `id` #1", 'say "yes"', 'it\'s "it"', "two\nlines", "back\\", " "])
def test_a_value_is_written_in_the_quotes_that_fit(path: Path, value: str) -> None:
    assert loaded(path, assignment("SOURCE_API_SECRET", value)) == {"SOURCE_API_SECRET": value}


def test_a_value_that_no_file_gives_back_is_a_fault_that_does_not_show_it() -> None:
    with pytest.raises(SettingsError) as refusal:
        assignment("SOURCE_API_SECRET", "hunter2\r")
    assert refusal.value.faults == ("SOURCE_API_SECRET: expected a value without a carriage return",)


def test_faults_of_lines_and_of_values_are_reported_together(path: Path) -> None:
    good = "".join(f"export {name}='{text}'\n" for name, text in REQUIRED.items())
    path.write_text(f"{good}export TUNEL_PORT=1\nexport LANES=many\nexport TASKS='0\n")
    with pytest.raises(SettingsError) as refusal:
        read_settings(path, EVERY_ROLE, {})
    assert refusal.value.faults == (
        "line 14: TUNEL_PORT: no such variable: did you mean TUNNEL_PORT?",
        "line 16: expected export NAME='value'",
        "LANES=many: expected a whole number from 0 to 1000",
    )


def test_file_and_process_together_make_the_settings(path: Path) -> None:
    path.write_text("".join(f"export {name}='{text}'\n" for name, text in REQUIRED.items()))
    settings = read_settings(path, EVERY_ROLE, {"SOURCE_CLUSTER_ID": "lemon"})
    assert settings.tunnel.link == "lemon-grape"
    assert settings.destination.api_secret.reveal() == REQUIRED["DESTINATION_API_SECRET"]
