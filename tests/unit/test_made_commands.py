"""Command lines that a machine makes of a topic's name take that topic alone, whatever its name."""

import argparse
import re
import shlex
from collections.abc import Sequence

import pytest

from appliance import command_line
from appliance.commands.run.operation import Choice
from appliance.console.model.connect import retries
from appliance.link.model.stops import Stop, StopKind
from appliance.program import IN_CONTAINER
from deploy.monitoring.alerts import ALERTS, TOPIC
from tests.support.console import of_size

LEGAL = ["a.b", "......", "-x", "--yes", "--topic=b"]


def parsed(words: Sequence[str]) -> argparse.Namespace:
    return command_line.parser(words[0], command_line.command(words[0])).parse_args(words)


def takes_alone(words: Sequence[str], name: str) -> bool:
    found = parsed(words)
    takes = Choice(found.topic).takes
    return takes(name) and not takes(name.replace(".", "-") + "b") and not any(map(takes, ("a-b", "abcdef")))


@pytest.mark.parametrize("name", [*LEGAL, "a b; $(c) 'd'"])
@pytest.mark.parametrize("kind", StopKind, ids=lambda kind: kind.name)
def test_case_981_the_remedies_of_a_stop_take_its_topic_alone(kind: StopKind, name: str) -> None:
    # Restarting the topic a.b resumed the paused a-b as well: the name was a regex.
    remedies = Stop(kind.words, name, 0, 5).remedies
    assert remedies
    for remedy in remedies:
        assert takes_alone(shlex.split(remedy.arguments), name), remedy.arguments


@pytest.mark.parametrize("name", [name for name in LEGAL if "=" not in name])
@pytest.mark.parametrize("lane", [None, "0", "1", "2"])
def test_case_981_a_restart_by_a_console_takes_the_stopped_topics_alone(lane: str | None, name: str) -> None:
    # "restart" of the stopped a.b resumed the paused a-b too, and that of "......" any six letters.
    made = list(retries(of_size({name: 6}, stopped=6), lane))
    assert made
    assert all(takes_alone(words, name) for words in made)


@pytest.mark.parametrize("name", LEGAL)
def test_case_981_the_commands_of_alerts_take_the_topic_alone(name: str) -> None:
    text = "".join(alert.description for alert in ALERTS).replace(TOPIC, name)
    commands = re.findall(f"`{IN_CONTAINER} ([^`]*--topic[^`]*)`", text)
    assert len(commands) >= 3
    assert all(takes_alone(shlex.split(words), name) for words in commands)


def test_case_1049_what_is_not_in_the_name_of_a_topic_ends_no_command_of_an_alert() -> None:
    commands = re.findall("`([^`]*)`", "".join(alert.description for alert in ALERTS))
    assert sum(TOPIC in words for words in commands) >= 3
    assert not [words for words in commands if "$labels" in words.replace(TOPIC, "")]


@pytest.mark.parametrize("command", ["pause", "failover", "promote", "rm-topic", "failback", "reset", "adopt"])
def test_case_981_each_command_on_chosen_topics_takes_a_literal_name(command: str) -> None:
    needed = {"reset": ["--to=latest"], "adopt": ["mm2"]}.get(command, [])
    assert takes_alone([command, *needed, "--topic-name=a.b"], "a.b")
    assert Choice(parsed([command, *needed, "--topic=a.b"]).topic).takes("a-b")
