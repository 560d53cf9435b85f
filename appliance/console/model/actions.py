"""The operator's commands: those that the page starts, and those to copy that may resolve a problem."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from appliance.errors import SettingsError
from appliance.link.model.problems import Fault
from appliance.link.model.stops import Remedy
from appliance.program import DOCTOR as DOCTOR_COMMAND
from appliance.program import DOCTOR_ELSEWHERE, quoted
from appliance.status.model.messages import Subject, held_by, problems_by_subject, remedies
from appliance.status.model.snapshot import ClusterStatus, Snapshot
from appliance.status.model.topic_status import TopicStatus

DOCTOR = "doctor"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A command that is carried out once its dry run has been seen; ``typed`` is the text that confirms it, if any.

    ``remedy`` is the command of a problem as the page shows it, which has to be there still.
    """

    title: str
    command: tuple[str, ...]
    typed: str = ""
    remedy: str = ""

    @property
    def line(self) -> str:
        """The command as one types it."""
        return " ".join(map(quoted, self.command))

    @property
    def dry_run(self) -> tuple[str, ...]:
        """The command that shows what this one would change."""
        return self.command[0], "--dry-run", *(word for word in self.command[1:] if word != "--yes")

    def confirm(self, form: Mapping[str, str]) -> None:
        """Refuse a form that does not confirm it."""
        if self.typed and form.get("confirm", "").strip() != self.typed:
            raise SettingsError([f"{self.title}: type {self.typed} to confirm it"])


@dataclass(frozen=True, slots=True)
class Action:
    """A command: its words, the fields of its form, and whether the link's name has to be typed to confirm it.

    ``fields`` maps the field of a form to the option that gets its text; ``needed`` may not be empty. One that
    ``only_shows`` changes nothing, and needs no dry run.
    """

    title: str
    explanation: str
    words: tuple[str, ...]
    fields: Mapping[str, str]
    needed: tuple[str, ...] = ()
    confirmed: bool = False
    only_shows: bool = False

    def proposal(self, form: Mapping[str, str], link: str) -> Proposal:
        """The command of a filled-in form."""
        if missing := [name for name in self.needed if not form.get(name, "").strip()]:
            raise SettingsError([f"{self.title}: missing: {', '.join(missing)}"])
        texts = {option: form.get(name, "").strip() for name, option in self.fields.items()}
        options = [f"{option}={text}" for option, text in texts.items() if text]
        return Proposal(self.title, (*self.words, *options), link if self.confirmed else "")


_CHOICE = {"topic": "--topic", "why": "--why"}
_PLACE = {"topic": "--topic", "partition": "--partition", "to": "--to"}

_DOCTOR = Action(
    "Walk the path",
    "Tries the whole path step by step, and names what to change.",
    ("doctor", "destination", "--json"),
    {},
    only_shows=True,
)

ACTIONS: Mapping[str, Action] = {
    "pause": Action("Pause", "Stops copying until it is resumed. Nothing is lost.", ("pause", "--yes"), _CHOICE),
    "resume": Action(
        "Resume", "Resumes what is paused, and stopped partitions where a retry may help.", ("resume",), _CHOICE
    ),
    "failover-dry-run": Action(
        "Failover, dry run",
        "Shows what a failover would lose now, and changes nothing.",
        ("failover", "--dry-run"),
        {"topic": "--topic"},
        only_shows=True,
    ),
    "promote": Action(
        "Promote",
        "Promotes the copies with nothing lost, or refuses. Stop the producers at the source first.",
        ("promote", "--yes", "--wait", "60"),
        _CHOICE,
        confirmed=True,
    ),
    "reset": Action(
        "Reset",
        "Sets where copying goes on: earliest, latest, an offset, or a time.",
        ("reset", "--yes"),
        _PLACE | {"why": "--why"},
        needed=("topic", "to"),
        confirmed=True,
    ),
    **({} if DOCTOR_ELSEWHERE else {DOCTOR: _DOCTOR}),
}
"""The commands by the name in their address."""


class Shown(NamedTuple):
    """A command to copy, and its effect; ``words`` are its arguments if the page may run it."""

    effect: str
    text: str
    words: tuple[str, ...] = ()


Commands = tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a sentence, and commands to copy."""

    text: str
    commands: Commands = ()


@dataclass(frozen=True, slots=True)
class StoppedPartition:
    """A stopped or unknown partition, and commands to copy."""

    name: str
    fault: Fault
    commands: Commands = ()


def problems_with_commands(snapshot: Snapshot) -> list[Problem]:
    """The problems; those of topics and partitions come with their commands, an unreachable cluster with the doctor."""
    return [Problem(text, commands(subject)) for subject, text in problems_by_subject(snapshot)]


def commands(subject: Subject) -> Commands:
    """The commands that may resolve a problem."""
    if isinstance(subject, ClusterStatus):
        return (Shown("test the path step by step", DOCTOR_COMMAND),)
    return tuple(Shown(each.effect, each.command, _words(each)) for each in remedies(subject))


def _words(remedy: Remedy) -> tuple[str, ...]:
    """The arguments of a remedy that resumes; none if the operator has to add an offset."""
    words = tuple(shlex.split(remedy.arguments))
    whole = " ".join(map(quoted, words)) == remedy.arguments and "OFFSET" not in words
    return words if whole and words[0] == "resume" else ()


def remedy_proposal(snapshot: Snapshot | None, text: str) -> Proposal:
    """The remedy of a present problem whose command this is."""
    shown = [each for problem in (problems_with_commands(snapshot) if snapshot else ()) for each in problem.commands]
    for each in shown:
        if each.text == text and each.words:
            return Proposal("Resume", each.words, remedy=text)
    raise SettingsError(["there is no such problem any more"])


def stops(topic: TopicStatus) -> list[StoppedPartition]:
    """The stopped and unknown partitions of a topic."""
    return [
        StoppedPartition(partition.name, fault, commands(partition))
        for partition in topic.partitions
        if (fault := partition.stopped or partition.unknown)
    ]


def holds(topic: TopicStatus) -> list[str]:
    """A sentence for each partition that a transaction at the source holds."""
    return [f"{partition.name}: {held_by(partition.held)}" for partition in topic.partitions if partition.held]
