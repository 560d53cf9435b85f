"""A process's membership in the group that decides who copies (``appliance.link.model.standby``)."""

import asyncio
import enum
import logging
import socket
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from kio.schema.errors import ErrorCode

from appliance.clock import loop_seconds, now_ms
from appliance.errors import ApplianceError, BrokerRefused, BrokerUnsupported
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.client.membership import (
    GroupProtocol,
    Joined,
    coordinator_of,
    describe_group,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from appliance.kafka.protocol.answer import failure
from appliance.link.client.retry import is_loading, retry_while_busy
from appliance.link.model.standby import (
    HEARTBEAT_SECONDS,
    PROTOCOL,
    PROTOCOL_TYPE,
    SESSION_SECONDS,
    Assignment,
    Member,
    Members,
    assign,
    decode_assignment,
    decode_member,
    encode,
    members_of,
)
from appliance.runtime.background import ends_within
from appliance.timestamps import utc
from appliance.version import VERSION

log = logging.getLogger("appliance.replicator")

_RETRY_SECONDS = 0.5
_ANSWER_SECONDS = 3.0
_LEAVE_SECONDS = 2.0
"""Longest wait of a stop for another member, or for the coordinator."""


class Step(enum.Enum):
    """The next step after a coordinator's answer."""

    STAY = enum.auto()
    JOIN_AGAIN = enum.auto()
    JOIN_AS_NEW = enum.auto()
    TAKE_ANOTHER_NAME = enum.auto()
    LOOK_UP = enum.auto()


NEXT: Mapping[ErrorCode, Step] = {
    ErrorCode.none: Step.STAY,
    ErrorCode.rebalance_in_progress: Step.JOIN_AGAIN,
    ErrorCode.illegal_generation: Step.JOIN_AGAIN,
    ErrorCode.unknown_member_id: Step.JOIN_AS_NEW,
    ErrorCode.fenced_instance_id: Step.TAKE_ANOTHER_NAME,
    ErrorCode.not_coordinator: Step.LOOK_UP,
    ErrorCode.coordinator_not_available: Step.LOOK_UP,
    ErrorCode.coordinator_load_in_progress: Step.LOOK_UP,
}
"""Any other answer is a refusal: the link has no standby, and this process copies."""


@dataclass(slots=True)
class Membership:
    """The membership of a process, ``me``, in the ``group`` of its link, from ``run`` to ``leave``.

    The coordinator knows it by its place, which a restarted process takes over at once (KIP-345). ``refused`` is the
    reason for which there is no membership: the process copies as if it were alone.
    """

    cluster: Cluster
    group: str
    me: Member
    tell: Callable[[ApplianceError | None], None] = lambda _: None
    """Called with a fault of the coordinator, and with None after it."""
    assignment: Assignment = field(default_factory=Assignment)
    refused: ApplianceError | None = None
    turned: float = 0.0
    """The time of the newest hand-over by the loop's clock."""
    _active: asyncio.Event = field(default_factory=asyncio.Event)
    _passive: asyncio.Event = field(default_factory=asyncio.Event)
    _assigned: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _joined: Joined = field(init=False)

    def __post_init__(self) -> None:
        self._joined = Joined("", self.me.place, -1, {})
        self._passive.set()

    @property
    def active(self) -> bool:
        """True while this process is the one that copies."""
        return self._active.is_set()

    async def until_active(self) -> bool:
        """Wait until this process is the one that copies."""
        return await self._active.wait()

    async def until_passive(self) -> None:
        """Wait until another one copies."""
        await self._passive.wait()

    def tell_ready(self, ready: bool = True) -> None:
        """Say that this process could copy at once, or no longer."""
        if ready is not self.me.ready:
            self._say(replace(self.me, ready=ready), urgent=not (ready and self.active))

    async def confirm(self) -> None:
        """Wait for a new assignment: the one that is known may be outdated."""
        self._assigned.clear()
        self._say(self.me, urgent=True)
        if self.refused is None:
            await self._assigned.wait()

    async def run(self) -> None:
        """Be a member, until cancelled or refused."""
        while self.refused is None:
            try:
                coordinator = await self._coordinator()
                step = await self._join(coordinator)
                while step is Step.STAY:
                    step = await self._stay(coordinator)
                    self.tell(None)
                self._prepare(step)
            except ApplianceError as error:
                refused = isinstance(error, BrokerRefused | BrokerUnsupported) and not error.retriable
                if refused and (self._active.is_set() or not self.assignment.active):
                    self._refuse(error)
                else:
                    self.tell(error)
                    await asyncio.sleep(_RETRY_SECONDS)

    async def leave(self) -> None:
        """Hand over to another member, if there is one, and leave; ``run`` goes on meanwhile."""
        if self.refused is None and self._joined.member:
            if self._active.is_set() and len(self.assignment.members) > 1:
                self._say(replace(self.me, leaving=True), urgent=True)
                await ends_within(_LEAVE_SECONDS, self.until_passive())
                await asyncio.sleep(HEARTBEAT_SECONDS)  # who leaves at once takes the reason along
            await ends_within(_LEAVE_SECONDS, self._leave())

    async def _leave(self) -> None:
        try:
            await leave_group(await coordinator_of(self.cluster, self.group), self.group, self._joined, _ANSWER_SECONDS)
        except ApplianceError as error:  # its session ends by itself
            log.debug("the group was not left", exc_info=error)

    async def _coordinator(self) -> Connection:
        """The group's coordinator; in a new cluster it has to be made first."""
        return await retry_while_busy(partial(coordinator_of, self.cluster, self.group), is_loading, _RETRY_SECONDS)

    async def _join(self, coordinator: Connection) -> Step:
        """Join, and take the assignment; as the group's leader make it first."""
        self._changed.clear()
        protocol = GroupProtocol(self.group, PROTOCOL_TYPE, PROTOCOL, SESSION_SECONDS)
        words = encode(replace(self.me, seen=self.assignment))
        code, joined = await join_group(coordinator, protocol, self._joined.member, self._joined.instance, words)
        if code is not ErrorCode.none:
            return self._step(code, "join")
        self._joined = joined
        code, assigned = await sync_group(coordinator, protocol, joined, self._assignments(joined))
        if code is ErrorCode.none:
            self._take(decode_assignment(assigned))
        return self._step(code, "be assigned in")

    async def _stay(self, coordinator: Connection) -> Step:
        if await ends_within(HEARTBEAT_SECONDS, self._changed.wait()):
            return Step.JOIN_AGAIN
        return self._step(await heartbeat(coordinator, self.group, self._joined, _ANSWER_SECONDS), "stay in")

    def _step(self, code: ErrorCode, doing: str) -> Step:
        if code not in NEXT:
            raise failure(code, f"{doing} group {self.group} of the {self.cluster.side} cluster")
        return NEXT[code]

    def _prepare(self, step: Step) -> None:
        """Prepare what the next turn of ``run`` begins with."""
        if step is Step.JOIN_AS_NEW:
            self._joined = self._joined._replace(member="")
        elif step is Step.TAKE_ANOTHER_NAME:  # another machine has the same name
            self._joined = Joined("", f"{self.me.place}-{uuid.uuid4().hex[:8]}", -1, {})

    def _assignments(self, joined: Joined) -> Mapping[str, bytes]:
        members = [member for words in joined.members.values() if (member := decode_member(words))]
        if not members:
            return {}
        return dict.fromkeys(joined.members, encode(assign(members, now_ms())))

    def _take(self, assignment: Assignment | None) -> None:
        before, self.assignment = self.assignment, assignment or self.assignment
        if assignment is None or self.me.run not in assignment.members:
            # The coordinator gives a process that has taken its predecessor's place the assignment of that one.
            self._say(self.me, urgent=True)
            return
        active = assignment.active == self.me.run
        for event, holds in ((self._active, active), (self._passive, not active)):
            event.set() if holds else event.clear()
        self._assigned.set()
        if assignment.number != before.number:
            self.turned = loop_seconds()
            fields = {"host": assignment.host, "since": utc(assignment.since / 1000), "reason": assignment.reason}
            log.info("copies" if active else "stands by: another host copies", extra={"fields": fields})

    def _say(self, me: Member, *, urgent: bool) -> None:
        self.me = replace(me, changes=self.me.changes + 1)
        if urgent:
            self._changed.set()

    def _refuse(self, error: ApplianceError) -> None:
        self.refused = error
        log.warning(f"{error}: copies without a standby, and takes the lanes from any other replicator of the link")
        self._active.set()
        self._passive.clear()
        self._assigned.set()


def membership(cluster: Cluster, group: str, place: int, tell: Callable[[ApplianceError | None], None]) -> Membership:
    """The membership of this process, the one with that number on this host."""
    host = socket.gethostname()
    me = Member(uuid.uuid4().hex[:12], host, now_ms(), f"{host}-{place}", VERSION)
    return Membership(cluster, group, me, tell)


async def members(cluster: Cluster, group: str) -> Members | None:
    """The members of a link's group; None while they come and go, when the coordinator shows no words.

    Raises:
        ApplianceError: it does not answer, or the group must not be described.
    """
    described = await describe_group(cluster, group)
    settled = not described.members or any(words for words, _ in described.members)
    return members_of(described.members) if settled else None
