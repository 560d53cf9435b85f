from dataclasses import replace

import pytest

from appliance.console.model.actions import ACTIONS, holds, problems_with_commands
from appliance.errors import SettingsError
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.link.model.problems import Fault
from appliance.status.model.messages import problems, remarks, remedies
from appliance.status.model.topic_status import BlockingTransaction
from tests.support.facts import NOW, SILENT, first, snapshot, with_position


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


def test_the_problems_are_those_of_the_status_with_their_commands() -> None:
    stopped = snapshot(destination=with_position(stopped="retention", stopped_at=NOW))
    (problem,) = problems_with_commands(stopped)
    assert [problem.text] == problems(stopped)
    (partition,) = [each for each in stopped.partitions if each.stopped]
    assert problem.commands == tuple((each.effect, each.command) for each in remedies(partition))
    assert problem.commands[0][1] == "bin/appliance resume --topic-name=payments --partition 0"
    assert problems_with_commands(snapshot(SILENT))[0].commands[0][1] == "bin/appliance doctor destination"


def test_case_292_a_topic_that_is_called_as_another_ones_partition_has_its_own_commands() -> None:
    """Its problem came with the command that resumes the partition."""
    taken = snapshot(destination=with_position(stopped="retention", stopped_at=NOW))
    namesake = replace(taken.topics[0], name="payments-0", stopped=Fault("claimed", NOW), partitions=())
    found = problems_with_commands(replace(taken, topics=(namesake, *taken.topics)))
    assert found[0].commands == ()
    assert "--topic-name=payments --partition 0" in found[1].commands[0][1]


def test_a_held_partition_is_told_as_in_the_status() -> None:
    taken = snapshot()
    hold = BlockingTransaction(OpenTransaction(90, 7, "billing", NOW), waiting=10)
    topic = replace(taken.topics[0], partitions=(replace(first(taken), held=hold),))
    assert holds(topic) == [line for line in remarks(replace(taken, topics=(topic,))) if "wait for" in line]
    assert "billing" in holds(topic)[0]
