import pytest

from appliance.console.model.actions import ACTIONS
from appliance.errors import SettingsError


def test_a_filled_in_form_is_a_command_line_in_which_no_text_becomes_an_option() -> None:
    form = {"topic": "--yes", "why": " planned ", "unknown": "x"}
    assert ACTIONS["pause"].command_line(form, "orange-grape") == ["pause", "--yes", "--topic=--yes", "--why=planned"]


@pytest.mark.parametrize("name", ["promote", "reset"])
@pytest.mark.parametrize("typed", ["", "orange", "yes"])
def test_what_cannot_be_undone_needs_the_links_name(name: str, typed: str) -> None:
    with pytest.raises(SettingsError, match="type orange-grape to confirm it"):
        ACTIONS[name].command_line({"confirm": typed, "to": "earliest", "topic": "a"}, "orange-grape")


def test_a_missing_field_is_named() -> None:
    with pytest.raises(SettingsError, match="missing: topic, to"):
        ACTIONS["reset"].command_line({"confirm": "orange-grape"}, "orange-grape")


@pytest.mark.parametrize("name", [name for name in ACTIONS if name.endswith("dry-run")])
def test_a_dry_run_changes_nothing(name: str) -> None:
    line = ACTIONS[name].command_line({"to": "earliest", "why": "x"}, "orange-grape")
    assert "--dry-run" in line
    assert "--yes" not in line
