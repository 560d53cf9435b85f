"""A group's coordinator in memory, and processes that are its members: Kafka's classic groups with static members.

What it does when is what Kafka's own coordinator does (KIP-62, KIP-345), on the loop's clock.
"""

import asyncio
import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v3 import FindCoordinatorResponse
from kio.schema.heartbeat.v3 import HeartbeatRequest, HeartbeatResponse
from kio.schema.join_group.v5 import JoinGroupRequest, JoinGroupResponse
from kio.schema.join_group.v5.response import JoinGroupResponseMember
from kio.schema.leave_group.v3 import LeaveGroupRequest, LeaveGroupResponse
from kio.schema.sync_group.v3 import SyncGroupRequest, SyncGroupResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from appliance.errors import Unreachable
from appliance.kafka.client.transactions import milliseconds
from appliance.link.client.membership import Membership
from appliance.link.model.standby import Member, decode_member

_NOW = milliseconds(0)
_DELAY_MAX = 0.02
_INITIAL_DELAY = 3.0


@dataclass(eq=False)
class _Known:
    """A member as the coordinator knows it; ``answer`` is what its pending request waits for."""

    id: str
    instance: str
    words: bytes
    session: float
    patience: float
    joining: bool = False
    answer: asyncio.Future[Any] | None = None
    expiry: asyncio.TimerHandle | None = None

    def reply(self, answer: Any) -> None:
        if self.answer and not self.answer.done():
            self.answer.set_result(answer)
        self.answer = None


@dataclass
class Coordinator:
    """The coordinator of one group."""

    chance: random.Random
    down: bool = False
    denied: bool = False
    state: str = "Empty"
    generation: int = 0
    leader: str = ""
    members: dict[str, _Known] = field(default_factory=dict)
    assignments: Mapping[str, bytes] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=itertools.count)
    _deadline: asyncio.TimerHandle | None = None

    async def handle(self, request: Any) -> Any:
        if isinstance(request, JoinGroupRequest):
            return await self._join(request)
        if isinstance(request, SyncGroupRequest):
            return await self._sync(request)
        if isinstance(request, HeartbeatRequest):
            return HeartbeatResponse(throttle_time=_NOW, error_code=self._heartbeat(request))
        assert isinstance(request, LeaveGroupRequest)
        for each in request.members:
            self._remove(each.member_id)
        return LeaveGroupResponse(throttle_time=_NOW, error_code=ErrorCode.none, members=())

    def fail_over(self) -> None:
        """Lose what only the broker's memory had: pending requests, a rebalance under way, and how old sessions are."""
        for each in self.members.values():
            each.answer, each.joining = None, False
            self._touch(each)
        if self._deadline:
            self._deadline.cancel()
        if self.state != "Empty":
            self.state = "Stable"

    async def _join(self, request: JoinGroupRequest) -> JoinGroupResponse:
        words, instance = request.protocols[0].metadata, request.group_instance_id or ""
        before = next((each for each in self.members.values() if each.instance == instance), None)
        if self.denied:
            return self._joined(ErrorCode.group_authorization_failed)
        if before and request.member_id not in ("", before.id):
            return self._joined(ErrorCode.fenced_instance_id)
        if request.member_id and request.member_id not in self.members:
            return self._joined(ErrorCode.unknown_member_id)
        if before and not request.member_id:
            known = self._replaced(before, words)
            if self.state == "Stable":  # the group's leader is not asked again
                return self._joined(ErrorCode.none, known)
        elif before:
            known, changed = before, before.words != words
            known.words = words
            self._touch(known)
            if not changed and known.id != self.leader and self.state != "Preparing":
                return self._joined(ErrorCode.none, known)
        else:
            times = request.session_timeout.total_seconds(), request.rebalance_timeout.total_seconds()
            known = _Known(f"{instance}-{next(self._ids)}", instance, words, *times)
            self.members[known.id] = known
        known.joining, known.answer = True, asyncio.get_running_loop().create_future()
        answer = known.answer
        self._prepare(_INITIAL_DELAY if self.state == "Empty" else 0)
        return await answer

    def _replaced(self, before: _Known, words: bytes) -> _Known:
        known = _Known(f"{before.instance}-{next(self._ids)}", before.instance, words, before.session, before.patience)
        before.reply(self._joined(ErrorCode.fenced_instance_id))
        if before.expiry:
            before.expiry.cancel()
        self.assignments = {known.id if key == before.id else key: each for key, each in self.assignments.items()}
        self.members = {known.id if key == before.id else key: each for key, each in self.members.items()}
        self.members[known.id] = known
        self.leader = known.id if self.leader == before.id else self.leader
        self._touch(known)
        return known

    def _prepare(self, delay: float = 0) -> None:
        if self.state != "Preparing":
            self.state = "Preparing"
            for each in self.members.values():
                if not each.joining:
                    each.reply(None)
            if self._deadline:
                self._deadline.cancel()
            longest = max(each.patience for each in self.members.values())
            self._deadline = asyncio.get_running_loop().call_later(delay or longest, self._complete)
        if not delay and all(each.joining for each in self.members.values()) and self.generation:
            self._complete()

    def _complete(self) -> None:
        joined = [each for each in self.members.values() if each.joining]
        if not joined:
            self.state = "Empty" if not self.members else self.state
            return
        if self._deadline:
            self._deadline.cancel()
        self.state, self.generation = "Completing", self.generation + 1
        if self.leader not in {each.id for each in joined}:
            self.leader = joined[0].id
        for each in self.members.values():
            self._touch(each)  # a static member that has not joined again gets a new session, too
        for each in joined:
            each.joining = False
            each.reply(self._joined(ErrorCode.none, each, everybody=each.id == self.leader))

    def _joined(self, code: ErrorCode, known: _Known | None = None, *, everybody: bool = False) -> JoinGroupResponse:
        members = tuple(
            JoinGroupResponseMember(member_id=each.id, group_instance_id=each.instance, metadata=each.words)
            for each in (self.members.values() if everybody else ())
        )
        return JoinGroupResponse(
            throttle_time=_NOW,
            error_code=code,
            generation_id=i32(self.generation),
            protocol_name="",
            leader=self.leader,
            member_id=known.id if known else "",
            members=members,
        )

    async def _sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        code = self._code(request)
        if code is not ErrorCode.none or self.state == "Preparing":
            return self._synced(code if code is not ErrorCode.none else ErrorCode.rebalance_in_progress)
        if self.state == "Completing":
            known = self.members[request.member_id]
            if request.member_id != self.leader:
                waiting = known.answer = asyncio.get_running_loop().create_future()
                return await waiting or self._synced(ErrorCode.rebalance_in_progress)
            self.assignments = {each.member_id: each.assignment for each in request.assignments}
            self.state = "Stable"
            for each in self.members.values():
                each.reply(self._synced(ErrorCode.none, each.id))
        return self._synced(ErrorCode.none, request.member_id)

    def _synced(self, code: ErrorCode, member: str = "") -> SyncGroupResponse:
        return SyncGroupResponse(throttle_time=_NOW, error_code=code, assignment=self.assignments.get(member, b""))

    def _heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        code = self._code(request)
        if code is ErrorCode.none:
            self._touch(self.members[request.member_id])
            return ErrorCode.rebalance_in_progress if self.state == "Preparing" else code
        return code

    def _code(self, request: HeartbeatRequest | SyncGroupRequest) -> ErrorCode:
        if self.denied:
            return ErrorCode.group_authorization_failed
        owners = [each.id for each in self.members.values() if each.instance == request.group_instance_id]
        if owners and owners != [request.member_id]:
            return ErrorCode.fenced_instance_id
        if request.member_id not in self.members:
            return ErrorCode.unknown_member_id
        return ErrorCode.none if request.generation_id == self.generation else ErrorCode.illegal_generation

    def _touch(self, known: _Known) -> None:
        if known.expiry:
            known.expiry.cancel()
        known.expiry = asyncio.get_running_loop().call_later(known.session, self._expire, known)

    def _expire(self, known: _Known) -> None:
        if known.joining:  # a member that waits for the others is not silent
            self._touch(known)
        elif not self.down:
            self._remove(known.id)

    def _remove(self, member: str) -> None:
        known = self.members.pop(member, None)
        if known is None:
            return
        if known.expiry:
            known.expiry.cancel()
        if not self.members:
            self.state = "Empty"
        elif self.state != "Preparing":
            self._prepare()
        elif all(each.joining for each in self.members.values()):
            self._complete()


@dataclass
class Process:
    """A replicator's process, as far as it is a member; also its way to the coordinator."""

    coordinator: Coordinator
    name: str
    place: str = ""
    cut: bool = False
    side: str = "destination"
    offered: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    membership: Membership = field(init=False)
    running: "asyncio.Task[None]" = field(init=False)
    killed: bool = False
    _awake: asyncio.Event = field(default_factory=asyncio.Event)

    def start(self) -> None:
        me = Member(self.name, self.name, int(asyncio.get_running_loop().time() * 1000), self.place or self.name)
        self.membership = Membership(self, "replicator-orange", me)  # type: ignore[arg-type]
        self._awake.set()
        self.running = asyncio.create_task(self.membership.run(), name=self.name)

    @property
    def well(self) -> bool:
        return not self.killed and not self.cut and self._awake.is_set()

    @property
    def active(self) -> bool:
        return not self.killed and self.membership.active

    def kill(self) -> None:
        self.killed = True
        self.running.cancel()

    def pause(self) -> None:
        self._awake.clear()

    def wake(self) -> None:
        self._awake.set()

    async def any_broker(self) -> "Process":
        return self

    async def broker(self, _node: int, _purpose: str) -> "Process":
        return self

    async def send(self, _exchange: Any) -> "asyncio.Future[Any]":
        await self._travel()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.set_result(
            FindCoordinatorResponse(
                throttle_time=_NOW,
                error_code=ErrorCode.none,
                error_message=None,
                node_id=BrokerId(1),
                host="",
                port=i32(1),
            )
        )
        return answer

    async def call(self, request: Any, _response_type: type[Any], timeout: float | None = None) -> Any:
        await self._travel()
        try:
            async with asyncio.timeout(timeout or 30.0):
                answer = await self.coordinator.handle(request)
        except TimeoutError:
            raise Unreachable("no answer") from None
        await self._travel()
        return answer

    async def _travel(self) -> None:
        """Take the time of a message's way; a paused process neither sends nor receives."""
        await self._awake.wait()
        await asyncio.sleep(self.coordinator.chance.uniform(0, _DELAY_MAX))
        await self._awake.wait()
        if self.cut or self.coordinator.down:
            raise Unreachable("the way is cut")


def words_of(coordinator: Coordinator) -> list[Member]:
    """The members as the coordinator knows them."""
    return [member for each in coordinator.members.values() if (member := decode_member(each.words))]
