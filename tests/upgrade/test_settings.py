"""The settings of the last release."""

import re
from pathlib import Path

import pytest

from appliance.settings.env_file import read_settings
from appliance.settings.role import EVERY_ROLE, Role
from tests.support.releases import Release
from tests.support.settings import REQUIRED, parsed


@pytest.mark.release  # needs this repository's history
@pytest.mark.parametrize("role", [*Role, EVERY_ROLE], ids=str)
def test_a_file_with_every_variable_of_the_last_release_is_accepted_as_it_is(
    role: Role, older: Release, tmp_path: Path
) -> None:
    template = (older.code / "setenv.sh.template").read_text().replace("\n#export ", "\nexport ")
    path = tmp_path / "setenv.sh"
    path.touch(mode=0o600)
    path.write_text(re.sub(r"^export (\w+)=''$", filled, template, flags=re.MULTILINE))
    assert read_settings(path, role, {}) == parsed(role)


def filled(line: re.Match[str]) -> str:
    """The line of a variable that has no default, with a value if it is required."""
    return f"export {line[1]}='{REQUIRED.get(line[1], '')}'"
