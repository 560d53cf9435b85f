import os
import re
import subprocess
from pathlib import Path

import pytest

from appliance.settings.env_file import load
from appliance.settings.parse import parse
from appliance.settings.role import EVERY_ROLE, Role
from appliance.settings.secret import Secret
from appliance.settings.variable import Variable
from appliance.settings.variables import ORDER_TABLE, TABLE
from tests.support.settings import REQUIRED

TEMPLATE = (Path(__file__).parents[3] / "setenv.sh.template").read_text()
ALL = (*TABLE, *ORDER_TABLE)
ENTRY = re.compile(r"^# (?P<reason>.+)\n(?P<off>#?)export (?P<name>\w+)='(?P<text>.*)'$", re.MULTILINE)


def filled_in() -> str:
    """Values of all variables: valid ones of the required variables, and the defaults of the others."""
    switched_on = TEMPLATE.replace("\n#export ", "\nexport ")
    return re.sub(
        r"^export (\w+)=''$",
        lambda match: f"export {match[1]}='{REQUIRED.get(match[1], '')}'",
        switched_on,
        flags=re.MULTILINE,
    )


def through_bash(path: Path) -> dict[str, str]:
    shown = subprocess.run(
        ["bash", "-euc", 'source "$1" && env -0', "bash", str(path)],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
    )
    assert shown.stderr == b""
    pairs = (entry.split("=", 1) for entry in shown.stdout.decode().split("\0") if entry)
    ours = {variable.name for variable in ALL}
    return {name: text for name, text in pairs if name in ours}


def test_a_name_is_defined_once() -> None:
    names = [variable.name for variable in ALL]
    assert len(names) == len(set(names))


def test_the_required_variables_are_the_thirteen_of_the_ancestors() -> None:
    assert {variable.name for variable in TABLE if variable.required} == set(REQUIRED)


def test_everything_that_holds_a_secret_is_confidential_and_nothing_else_is() -> None:
    assert {variable.name for variable in TABLE if variable.confidential} == {
        variable.name for variable in TABLE if re.search("(SECRET|TOKEN|PASSWORD|SALT)(_PREVIOUS)?$", variable.name)
    }


@pytest.mark.parametrize("variable", ALL, ids=lambda variable: variable.name)
def test_a_default_is_a_value_and_a_required_variable_has_an_empty_one(variable: Variable[object]) -> None:
    value = variable.absent
    if variable.required:
        assert value in ("", (), Secret(""))


@pytest.mark.parametrize("variable", ALL, ids=lambda variable: variable.name)
def test_a_reason_is_one_sentence_on_one_line_of_the_template(variable: Variable[object]) -> None:
    assert variable.purpose[0].isupper()
    assert len(variable.purpose) < 110
    assert "\n" not in variable.purpose


def test_the_source_vm_needs_no_kafka_login() -> None:
    assert not [variable.name for variable in TABLE if "API" in variable.name and variable.roles & Role.SOURCE]


def test_every_variable_is_there_for_some_role() -> None:
    assert {variable.name for variable in ALL if not variable.roles & EVERY_ROLE} == {
        "IMAGE"
    }  # the prepare scripts alone


def test_the_template_has_every_variable_with_its_reason_and_default_in_the_tables_order() -> None:
    in_template = [(entry["name"], entry["reason"], entry["off"], entry["text"]) for entry in ENTRY.finditer(TEMPLATE)]
    in_table = [
        (variable.name, variable.purpose, "" if variable.name in REQUIRED else "#", variable.default or "")
        for variable in ALL
    ]
    assert in_template == in_table


def test_the_template_has_no_line_beyond_entries_and_comments() -> None:
    assert re.findall(r"^(?!#|export |$).*", TEMPLATE, re.MULTILINE) == []
    assert TEMPLATE.count("export ") == len(ALL)


def test_bash_can_source_the_template_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "setenv.sh"
    path.write_text(TEMPLATE)
    assert through_bash(path) == load(path, {}) == dict.fromkeys(REQUIRED, "")


def test_a_filled_in_template_is_the_same_through_bash_and_through_us(tmp_path: Path) -> None:
    path = tmp_path / "setenv.sh"
    path.write_text(filled_in())
    assert through_bash(path) == load(path, {})
    assert set(load(path, {})) == {variable.name for variable in ALL}
    assert parse(through_bash(path), EVERY_ROLE) == parse(REQUIRED, EVERY_ROLE)
