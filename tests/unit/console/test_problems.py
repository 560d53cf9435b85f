from dataclasses import replace

from appliance.console.model.problems import held, problems_with_commands
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.status.model.messages import problems, remarks, remedies
from appliance.status.model.snapshot import BlockingTransaction, Fault
from tests.support.facts import NOW, SILENT, first, snapshot, with_position


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
    assert held(topic) == [line for line in remarks(replace(taken, topics=(topic,))) if "wait for" in line]
    assert "billing" in held(topic)[0]
