import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.settings.env_file import assignment
from deploy.prepare.writing import differences
from deploy.render.compose import SOURCE_VM
from tests.support.rendering import files
from tests.support.settings import SECRET

PATH = "prepared/tunnel.sh"


def between(old: dict[str, str], new: dict[str, str]) -> list[str]:
    return differences(PATH, files(SOURCE_VM, **old)[PATH], files(SOURCE_VM, **new)[PATH])


def test_equal_files_have_no_differences() -> None:
    assert between({}, {}) == []


def test_a_changed_setting_is_shown_with_both_values() -> None:
    assert between({}, {"TUNNEL_PORT": "15061"})[2:] == ["@@ -8,0 +9 @@", "+export TUNNEL_PORT='15061'"]
    changed = between({"LOG_LEVEL": "info"}, {"LOG_LEVEL": "debug"})[3:]
    assert changed == ["-export LOG_LEVEL='info'", "+export LOG_LEVEL='debug'"]


def test_of_a_secret_it_is_shown_that_it_changed_and_no_more() -> None:
    changed = between({}, {"SHARED_SECRET": SECRET[::-1]})[3:]
    assert changed == ["-export SHARED_SECRET=**** (old)", "+export SHARED_SECRET=**** (new)"]


@given(
    old=st.text("§%\"'\\", min_size=4),
    new=st.text("§%\"'\\", min_size=4),
    other=st.sampled_from(["", "export TASKS='2'\n", "# a line\n"]),
)
def test_no_part_of_a_secret_is_ever_shown(old: str, new: str, other: str) -> None:
    lines = differences("f", assignment("SOURCE_API_SECRET", old), other + assignment("SOURCE_API_SECRET", new) + other)
    assert not {letter for line in lines for letter in line} & {"§", "%", '"', "\\"}


@pytest.mark.parametrize(
    "line",
    [
        "SHARED_SECRET='§'",
        "  export  SHARED_SECRET='§'",
        "export SHARED_SECRET = §",
        "#export SHARED_SECRET='§'",
        "export TASKS='2'; SHARED_SECRET_PREVIOUS=§",
        "shared_secret: §",
        "SHARED_SECRET='§\n§'",
    ],
)
def test_a_line_that_a_hand_changed_is_not_shown_either_if_it_mentions_a_secret(line: str) -> None:
    shown = "\n".join(differences("f", f"{line}\n", assignment("SHARED_SECRET", "new")))
    assert "§" not in shown
    assert "SHARED_SECRET" in shown.upper()


@pytest.mark.parametrize("name", ["SHARED_SECRET_FILE", "SHARED_SECRET_PREVIOUS_FILE"])
def test_the_path_of_a_file_that_holds_a_secret_is_shown(name: str) -> None:
    assert differences("f", "", assignment(name, "/run/new"))[3:] == [f"+export {name}='/run/new'"]


def test_the_salt_is_not_shown() -> None:
    assert differences("f", "# salt: 5a17\n", "# salt: 5a18\n")[3:] == ["-# salt: **** (old)", "+# salt: **** (new)"]
