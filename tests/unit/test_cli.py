"""The table of the commands."""

import pytest

from appliance import cli
from appliance.runtime.command import Command


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_is_where_the_table_says(name: str) -> None:
    assert isinstance(cli.command(name), Command)
