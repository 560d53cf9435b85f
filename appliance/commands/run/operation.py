"""One run of an operator's command on a link: its topics, its author and reason, and the consent."""

import asyncio
import getpass
import os
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from appliance.commands.run.link_lanes import LinkLanes, Subjects
from appliance.errors import ApplianceError, SettingsError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.handle import Link
from appliance.link.model.copy_states import LINK, CopyState, StateRecord
from appliance.link.model.json_records import words
from appliance.link.model.naming import Naming
from appliance.link.model.topic_choice import among, takes
from appliance.output import say
from appliance.program import OPERATOR_VARIABLE
from appliance.settings.values import Settings

WAIT_SECONDS = 600.0
"""Longest wait of a planned promotion for its copies, unless the operator says otherwise."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The options of a command: ``topic`` is a choice of topics; ``wait`` are seconds.

    With ``keep_diverged`` a failback keeps the sources' uncopied records; with ``deletes_dead_letters`` a copy's dead
    letters are deleted with it.
    """

    topic: str = ""
    why: str = ""
    dry_run: bool = False
    yes: bool = False
    allow_loss: bool = False
    wait: float = WAIT_SECONDS
    keep_diverged: bool = False
    deletes_dead_letters: bool = False

    def takes(self, topic: str) -> bool:
        """True when the command applies to this source topic."""
        return takes(self.topic, topic)

    def subjects(self, topics: Collection[str]) -> Subjects:
        """The topics among these that the command applies to; None for all, and future ones."""
        return among(self.topic, topics) if self.topic else None


@dataclass(slots=True)
class Operation:
    """A command's run on a link, with the link's lanes; ``tell`` prints a line for the operator."""

    settings: Settings
    choice: Choice
    link: Link
    tell: Callable[[str], None]
    lanes: LinkLanes = field(init=False)

    def __post_init__(self) -> None:
        stamp = StateRecord(LINK, CopyState.ACTIVE, 0, words(operator()), words(self.choice.why), uuid.uuid4().hex)
        timeout = self.settings.engine.transaction_timeout
        self.lanes = LinkLanes(self.link, timeout, stamp)

    @property
    def source(self) -> KafkaCluster:
        """The link's source cluster."""
        return self.link.source

    @property
    def destination(self) -> KafkaCluster:
        """The link's destination cluster."""
        return self.link.destination

    @property
    def naming(self) -> Naming:
        """The link's names."""
        return self.link.naming

    def subjects(self, also: Collection[str] = ()) -> Subjects:
        """The command's topics among those that the link knows, and others; as ``Choice.subjects``."""
        topics = {topic for topic, _ in self.lanes.positions} | self.lanes.states.keys() | {*also}
        return self.choice.subjects(topics - {LINK})

    async def consent(self, question: str) -> None:
        """Ask the operator, unless ``--yes`` was given."""
        if not self.choice.yes:
            await agree(question)


async def agree(question: str) -> None:
    """Ask the operator, who may refuse."""
    if not sys.stdin.isatty():
        raise SettingsError([f"{question}: there is no terminal to ask at: give --yes, or --dry-run to see more"])
    say(f"{question}: go on? [y/N] ", end="", error=True)
    if (await _line()).strip().lower() not in ("y", "yes"):
        raise ApplianceError("nothing was changed")


@asynccontextmanager
async def operation(settings: Settings, choice: Choice, tell: Callable[[str], None]) -> AsyncIterator[Operation]:
    """A run with both clusters; the source need not answer."""
    async with Link.open(settings) as link:
        yield Operation(settings, choice, link, tell)


def operator() -> str:
    """The user and the host of this process; in a container the user may have no name.

    A user of the control center is marked as one: such a name may be that of any user of this host.
    """
    if user := os.environ.get(OPERATOR_VARIABLE):
        return f"{user} (control center)@{socket.gethostname()}"
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


async def _line() -> str:
    """A line from the terminal; a stop cancels it, unlike a thread that waits for it."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()
