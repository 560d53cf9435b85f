"""The operator's commands: those that the page starts, and those to copy that may resolve a problem."""

from collections.abc import Mapping
from dataclasses import dataclass

from appliance.errors import SettingsError
from appliance.link.model.problems import Fault
from appliance.program import DOCTOR as DOCTOR_COMMAND
from appliance.program import DOCTOR_ELSEWHERE
from appliance.status.model.messages import Subject, held_by, problems_by_subject, remedies
from appliance.status.model.snapshot import ClusterStatus, Snapshot
from appliance.status.model.topic_status import TopicStatus

DOCTOR = "doctor"


@dataclass(frozen=True, slots=True)
class Action:
    """A command: its words, the fields of its form, and whether the link's name has to be typed to confirm it.

    ``fields`` maps the field of a form to the option that gets its text; ``needed`` may not be empty.
    """

    title: str
    explanation: str
    words: tuple[str, ...]
    fields: Mapping[str, str]
    needed: tuple[str, ...] = ()
    confirmed: bool = False

    def command_line(self, form: Mapping[str, str], link: str) -> list[str]:
        """The arguments of ``bin/appliance`` for a filled-in form."""
        if self.confirmed and form.get("confirm", "").strip() != link:
            raise SettingsError([f"{self.title}: type {link} to confirm it"])
        if missing := [name for name in self.needed if not form.get(name, "").strip()]:
            raise SettingsError([f"{self.title}: missing: {', '.join(missing)}"])
        texts = {option: form.get(name, "").strip() for name, option in self.fields.items()}
        return [*self.words, *(f"{option}={text}" for option, text in texts.items() if text)]


_CHOICE = {"topic": "--topic", "why": "--why"}
_PLACE = {"topic": "--topic", "partition": "--partition", "to": "--to"}

_DOCTOR = Action(
    "Walk the path",
    "Tries the whole path step by step, and names what to change.",
    ("doctor", "destination", "--json"),
    {},
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
    ),
    "promote-dry-run": Action(
        "Promote, dry run",
        "Shows what a promotion would change, and changes nothing.",
        ("promote", "--dry-run"),
        {"topic": "--topic"},
    ),
    "promote": Action(
        "Promote",
        "Promotes the copies with nothing lost, or refuses. Stop the producers at the source first.",
        ("promote", "--yes", "--wait", "60"),
        _CHOICE,
        confirmed=True,
    ),
    "reset-dry-run": Action(
        "Reset, dry run",
        "Shows which offsets would be left out or copied again, and changes nothing.",
        ("reset", "--dry-run"),
        _PLACE,
        needed=("to",),
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

Commands = tuple[tuple[str, str], ...]
"""Commands to copy, each behind its effect."""


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
        return (("test the path step by step", DOCTOR_COMMAND),)
    return tuple((each.effect, each.command) for each in remedies(subject))


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
