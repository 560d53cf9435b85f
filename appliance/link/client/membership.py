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
    REBALANCE_SECONDS,
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

_PAUSE_SECONDS, _RETRY_SECONDS, _REFUSED_SECONDS = 0.05, 0.5, 30.0
"""Pauses before a next JoinGroup: after an answer, a failure and a refusal."""
_TOLD_SECONDS, _ALONE_SECONDS = 5.0, 30.0
"""Age of a failure from which it is told, and from which a process that knows of no other one copies."""
_ANSWER_SECONDS = 3.0
_LEAVE_SECONDS = 2.0
"""Longest wait of a stop for another member, or for the coordinator."""


class Step(enum.Enum):
    """The next step after a coordinator's answer."""

    STAY = enum.auto()
    JOIN_AGAIN = enum.auto()
    JOIN_AS_NEW = enum.auto()
    TAKE_ANOTHER_NAME = enum.auto()


NEXT: Mapping[ErrorCode, Step] = {
    ErrorCode.none: Step.STAY,
    ErrorCode.rebalance_in_progress: Step.JOIN_AGAIN,
    ErrorCode.illegal_generation: Step.JOIN_AGAIN,
    ErrorCode.unknown_member_id: Step.JOIN_AS_NEW,
    ErrorCode.fenced_instance_id: Step.TAKE_ANOTHER_NAME,
}
"""Any other answer is an error: the coordinator is another one, or refuses."""


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
    displaced: int = 0
    """Number of short runs in a row that ended since another process had the lanes."""
    turned: float = 0.0
    """The time of the newest hand-over by the loop's clock."""
    _active: asyncio.Event = field(default_factory=asyncio.Event)
    _passive: asyncio.Event = field(default_factory=asyncio.Event)
    _assigned: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _leaving: asyncio.Lock = field(default_factory=asyncio.Lock)
    _asked: bool = False
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
            self._say(replace(self.me, ready=ready))

    async def confirm(self) -> None:
        """Wait for a new assignment: the one that is known may be outdated."""
        self._assigned.clear()
        self._say(self.me)
        if self.refused is None:
            await self._assigned.wait()

    async def run(self) -> None:
        """Be a member, until cancelled; one that is refused asks again from time to time."""
        heard = loop_seconds()
        while True:
            pause = _PAUSE_SECONDS
            try:
                coordinator = await coordinator_of(self.cluster, self.group)
                step = await self._join(coordinator)
                while step is Step.STAY:
                    heard, self.refused = loop_seconds(), None
                    self.tell(None)
                    step = await self._stay(coordinator)
                self._prepare(step)
            except ApplianceError as error:
                pause = self._failed(error, loop_seconds() - heard)
            await asyncio.sleep(pause)

    async def leave(self) -> None:
        """Hand over to another member, if there is one, and leave; ``run`` goes on meanwhile."""
        async with self._leaving:
            if self.refused is None and self._asked:
                if self.active and len(self.assignment.members) > 1:
                    self._say(replace(self.me, leaving=True))
                    await ends_within(_LEAVE_SECONDS, self.until_passive())
                    await asyncio.sleep(HEARTBEAT_SECONDS)  # who leaves at once takes the reason along
                self._asked = False
                await ends_within(_LEAVE_SECONDS, self._leave())

    async def _leave(self) -> None:
        """Leave on another connection: a broker reads none on which a JoinGroup waits."""
        try:
            coordinator = await coordinator_of(self.cluster, self.group, "leave")
            await leave_group(coordinator, self.group, self._joined, _ANSWER_SECONDS)
        except ApplianceError as error:  # its session ends by itself
            log.debug("the group was not left", exc_info=error)

    def _failed(self, error: ApplianceError, silent: float) -> float:
        """Judge a failure after so many seconds of them; the pause before the next try.

        A process that knows of no other one copies if it is refused, or if nobody answers for long: it may be alone.
        """
        knows_none = self.active or not self.assignment.active
        refused = isinstance(error, BrokerRefused | BrokerUnsupported) and not error.retriable
        if refused and knows_none:
            if self.refused is None:
                log.warning(f"{error}: copies without a standby, and takes the lanes of any other replicator")
            self.refused = error
        elif silent > _TOLD_SECONDS or refused:
            self.tell(error)
        if knows_none and (refused or silent > _ALONE_SECONDS):
            self._become(active=True)
        return _REFUSED_SECONDS if refused else _RETRY_SECONDS

    async def _join(self, coordinator: Connection) -> Step:
        """Join, and take the assignment; as the group's leader make it first."""
        self._changed.clear()
        self._asked = True
        protocol = GroupProtocol(self.group, PROTOCOL_TYPE, PROTOCOL, SESSION_SECONDS, REBALANCE_SECONDS)
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
        if self.me.run not in self.assignment.members:
            self._say(self.me)
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
        if self.me.run not in self.assignment.members:
            return  # that of the predecessor, whose place this process has taken: it joins again
        active = self.assignment.active == self.me.run
        self._become(active=active)
        if self.assignment.number != before.number:
            self.turned = loop_seconds()
            since = utc(self.assignment.since / 1000)
            fields = {"host": self.assignment.host, "since": since, "reason": self.assignment.reason}
            log.info("copies" if active else "stands by: another replicator copies", extra={"fields": fields})

    def _become(self, *, active: bool) -> None:
        for event, holds in ((self._active, active), (self._passive, not active)):
            event.set() if holds else event.clear()
        self._assigned.set()

    def _say(self, me: Member) -> None:
        self.me = replace(me, changes=self.me.changes + 1)
        self._changed.set()


def membership(cluster: Cluster, group: str, place: str, tell: Callable[[ApplianceError | None], None]) -> Membership:
    """The membership of this process, the one with that ``place`` on this host."""
    host = socket.gethostname()
    me = Member(uuid.uuid4().hex[:12], host, now_ms(), f"{host}/{place}", VERSION)
    return Membership(cluster, group, me, tell)


async def members(cluster: Cluster, group: str) -> Members | None:
    """The members of a link's group; None while they come and go, when the coordinator shows no words.

    Raises:
        ApplianceError: it does not answer, or the group must not be described.
    """
    described = await retry_while_busy(partial(describe_group, cluster, group), is_loading, _RETRY_SECONDS)
    settled = not described or any(words for words, _ in described)
    return members_of(described) if settled else None
