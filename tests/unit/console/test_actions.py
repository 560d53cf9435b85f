from dataclasses import replace

import pytest

from appliance.console.model.actions import ACTIONS, holds, problems_with_commands, remedy_proposal
from appliance.errors import SettingsError
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.link.model.problems import Fault
from appliance.status.model.messages import problems, remarks, remedies
from appliance.status.model.topic_status import BlockingTransaction
from tests.support.facts import NOW, SILENT, first, snapshot, with_position

AFTER_FAILBACK = "a producer wrote there after the failback"


def test_a_filled_in_form_is_a_command_line_in_which_no_text_becomes_an_option() -> None:
    form = {"topic": "--yes", "why": " planned ", "unknown": "x"}
    proposal = ACTIONS["pause"].proposal(form, "orange-grape")
    assert proposal.command == ("pause", "--yes", "--topic=--yes", "--why=planned")
    assert proposal.dry_run == ("pause", "--dry-run", "--topic=--yes", "--why=planned")


@pytest.mark.parametrize("name", ["promote", "reset"])
@pytest.mark.parametrize("typed", ["", "orange", "yes"])
def test_what_cannot_be_undone_needs_the_links_name(name: str, typed: str) -> None:
    proposal = ACTIONS[name].proposal({"to": "earliest", "topic": "a"}, "orange-grape")
    with pytest.raises(SettingsError, match="type orange-grape to confirm it"):
        proposal.confirm({"confirm": typed})
    proposal.confirm({"confirm": " orange-grape "})


def test_a_missing_field_is_named() -> None:
    with pytest.raises(SettingsError, match="missing: topic, to"):
        ACTIONS["reset"].proposal({}, "orange-grape")


@pytest.mark.parametrize("name", [name for name in ACTIONS if name != "doctor"])
def test_what_runs_first_changes_nothing(name: str) -> None:
    action = ACTIONS[name]
    proposal = action.proposal({"to": "earliest", "topic": "a", "why": "x"}, "orange-grape")
    first = proposal.command if action.only_shows else proposal.dry_run
    assert "--dry-run" in first
    assert "--yes" not in first


def test_a_remedy_that_resumes_is_proposed_and_one_that_needs_an_offset_or_promotes_is_only_shown() -> None:
    stopped = snapshot(destination=with_position(stopped="retention", stopped_at=NOW))
    (problem,) = problems_with_commands(stopped)
    first, passing = problem.commands
    assert remedy_proposal(stopped, first.text).dry_run == (
        *("resume", "--dry-run", "--topic-name=payments"),
        *("--partition", "0"),
    )
    after = snapshot(destination=with_position(stopped=AFTER_FAILBACK, stopped_at=NOW))
    shown = [each for problem in problems_with_commands(after) for each in problem.commands if not each.words]
    assert [each.text.split()[1] for each in shown] == ["failover", "failback"]
    for taken, text in (
        (stopped, passing.text),
        (stopped, "resume"),
        (snapshot(), first.text),
        (None, ""),
    ):
        with pytest.raises(SettingsError, match="there is no such problem any more"):
            remedy_proposal(taken, text)


def test_the_problems_are_those_of_the_status_with_their_commands() -> None:
    stopped = snapshot(destination=with_position(stopped="retention", stopped_at=NOW))
    (problem,) = problems_with_commands(stopped)
    assert [problem.text] == problems(stopped)
    (partition,) = [each for each in stopped.partitions if each.stopped]
    assert [each[:2] for each in problem.commands] == [(each.effect, each.command) for each in remedies(partition)]
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
