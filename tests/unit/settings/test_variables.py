import re

import pytest

from appliance.settings.role import EVERY_ROLE, Role
from appliance.settings.secret import Secret
from appliance.settings.variable import Variable
from appliance.settings.variables import TABLE
from tests.support.settings import REQUIRED


def test_a_name_is_defined_once() -> None:
    names = [variable.name for variable in TABLE]
    assert len(names) == len(set(names))


def test_the_required_variables_are_the_thirteen_of_the_ancestors() -> None:
    assert {variable.name for variable in TABLE if variable.required} == set(REQUIRED)


def test_everything_that_holds_a_secret_is_confidential_and_nothing_else_is() -> None:
    assert {variable.name for variable in TABLE if variable.confidential} == {
        variable.name for variable in TABLE if re.search("(SECRET|TOKEN|PASSWORD|SALT)(_PREVIOUS)?$", variable.name)
    }


@pytest.mark.parametrize("variable", TABLE, ids=lambda variable: variable.name)
def test_a_default_is_a_value_and_a_required_variable_has_an_empty_one(variable: Variable[object]) -> None:
    value = variable.absent
    if variable.required:
        assert value in ("", (), Secret(""))


@pytest.mark.parametrize("variable", TABLE, ids=lambda variable: variable.name)
def test_a_reason_is_one_sentence_on_one_line_of_the_template(variable: Variable[object]) -> None:
    assert variable.reason[0].isupper()
    assert len(variable.reason) < 110
    assert "\n" not in variable.reason


def test_the_source_vm_needs_no_kafka_login() -> None:
    assert not [variable.name for variable in TABLE if "API" in variable.name and variable.roles & Role.SOURCE]


def test_every_variable_is_there_for_some_role() -> None:
    assert all(variable.roles & EVERY_ROLE for variable in TABLE)
