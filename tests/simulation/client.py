"""The cluster interface on brokers in memory: a seed decides the fate and the time of each request."""

import asyncio
import enum
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload

from appliance.errors import ApplianceError, BrokerBusy, Unreachable
from appliance.kafka.client.fetch import FetchExchange
from appliance.kafka.client.interface import Timeouts, Transfer
from appliance.kafka.protocol.metadata import NOBODY, Metadata
from appliance.kafka.protocol.wire import Answer, Exchange, Response, TypedExchange
from appliance.settings.values import Side
from tests.simulation.brokers import NODES, Brokers
from tests.simulation.fetching import Fetching
from tests.simulation.loop import Life, SimulatedLoop

TIMEOUTS = Timeouts(connect=0.5, answer=2.0, small_answer=1.0)

_REFUSALS: Mapping[str, tuple[ErrorCode, ...]] = {
    "ProduceExchange": (
        ErrorCode.not_leader_or_follower,
        ErrorCode.request_timed_out,
        ErrorCode.not_enough_replicas,
        ErrorCode.kafka_storage_error,
    ),
    "FetchExchange": (ErrorCode.not_leader_or_follower, ErrorCode.unknown_leader_epoch, ErrorCode.kafka_storage_error),
    "InitProducerIdRequest": (ErrorCode.not_coordinator, ErrorCode.coordinator_load_in_progress),
    "AddPartitionsToTxnRequest": (ErrorCode.concurrent_transactions, ErrorCode.not_coordinator),
    "EndTxnRequest": (ErrorCode.coordinator_not_available, ErrorCode.coordinator_load_in_progress),
    "ListOffsetsRequest": (ErrorCode.not_leader_or_follower, ErrorCode.offset_not_available),
    "FindCoordinatorRequest": (ErrorCode.coordinator_not_available,),
    "ListGroupsRequest": (ErrorCode.coordinator_load_in_progress,),
    "OffsetFetchRequest": (ErrorCode.not_coordinator, ErrorCode.coordinator_load_in_progress),
    "OffsetCommitRequest": (ErrorCode.not_coordinator, ErrorCode.request_timed_out),
    "OffsetForLeaderEpochRequest": (ErrorCode.unknown_leader_epoch, ErrorCode.not_leader_or_follower),
}


class Fate(enum.Enum):
    """The fate of a request."""

    ANSWERED = "answered"
    LATE = "late"
    ANSWERED_LATE = "answered late"
    LOST = "lost"
    ANSWER_LOST = "answer lost"
    REFUSED = "refused"
    SILENT = "lost without a word"


_FAULTY = tuple(Fate)[1:]
_TICK = 1e-6
"""Spacing that keeps a connection's requests and answers in order, in seconds."""


@dataclass(slots=True)
class Fates:
    """Chance, with how often something goes wrong, and the trace of it all."""

    loop: SimulatedLoop
    chance: random.Random
    rate: float = 0.0
    lag: float = 0.0
    """Probability that a broker tells metadata of some changes ago."""
    was_disturbed: bool = False
    """Some requests may have been late or lost by now."""
    trace: list[tuple[Any, ...]] = field(default_factory=list)

    def next(self) -> Fate:
        return self.chance.choice(_FAULTY) if self.rate and self.chance.random() < self.rate else Fate.ANSWERED

    def disturb(self, rate: float) -> None:
        """From now on so many requests are late, lost or refused."""
        self.rate = rate
        self.was_disturbed |= rate > 0

    def calm(self) -> None:
        """From now on all goes well."""
        self.rate = self.lag = 0.0

    def latency(self) -> float:
        return 0.0002 + 0.0018 * self.chance.random()

    def note(self, *what: Any) -> None:
        """Add a line to the trace."""
        self.trace.append((self.loop.time(), self.loop.life.name, *what))


@dataclass(frozen=True, slots=True)
class Ask:
    """A request whose answer is our own value: metadata, and which broker coordinates."""

    name: str
    answer: Callable[[], Any]


@dataclass(slots=True, eq=False)
class _Pending:
    exchange: Any
    answer: asyncio.Future[Any]
    timer: Any = None


class SimulatedConnection:
    """A connection to one broker: ordered in both directions, until it breaks; requests on the way may still arrive."""

    def __init__(self, brokers: Brokers, node: int, life: Life, fates: Fates, label: str) -> None:
        self.timeouts = TIMEOUTS
        self.newest = Transfer(0.0, 0.0, 0)
        self.open = True
        self.offered: Mapping[int, tuple[int, int]] = dict.fromkeys(set(range(100)) - brokers.not_offered, (0, 99))
        self._brokers, self._node, self._life, self._fates = brokers, node, life, fates
        self._loop = fates.loop
        self._label = label
        self._pending: deque[_Pending] = deque()
        self._arrival = self._answer_at = 0.0
        self._busy = False  # the broker takes the next request when it has answered the one before
        self._queue: deque[tuple[_Pending, Fate]] = deque()
        self._cut = False  # nothing that is sent from now on arrives
        self._mute = False  # nothing that is answered from now on arrives
        self._doubtful = False  # an answer may be long in coming, or not come at all
        self._fetching = Fetching(brokers)

    async def call(
        self,
        request: RequestPayload,
        response_type: type[Response],  # noqa: ARG002
        timeout: float | None = None,
    ) -> Response:
        return await (await self.send(request, timeout))  # type: ignore[arg-type, no-any-return]

    async def ask(self, exchange: Exchange[Answer], timeout: float | None = None) -> Answer:
        return await (await self.send(exchange, timeout))

    async def send(self, exchange: Exchange[Answer], timeout: float | None = None) -> "asyncio.Future[Answer]":
        if not self.open:
            raise Unreachable(f"the connection to {self._label} is broken")
        loop, now = self._loop, self._loop.time()
        pending = _Pending(exchange, loop.create_future())
        self._pending.append(pending)
        fate = self._fates.next()
        delay = self._fates.latency()
        if self._node in self._brokers.away:
            self._cut = self._doubtful = True
        if fate is Fate.LATE:
            delay += self._fates.chance.choice((0.1, 1.0, 3.0))
        self._arrival = arrival = now + delay if now + delay > self._arrival else self._arrival + _TICK
        if fate is not Fate.ANSWERED:
            self._doubtful = True
            self._fates.note(self._label, type(exchange).__name__, "will be", fate.value)
        if self._doubtful:
            seconds = min(timeout, 2 * TIMEOUTS.answer) if timeout is not None else TIMEOUTS.answer
            pending.timer = loop.at(now + seconds, self._life, self._overdue, pending)
        if fate is Fate.LOST:
            loop.at(self._arrival, self._life, self._reset)
            self._cut = True
        elif fate is Fate.SILENT:
            self._cut = True
        if not self._cut:
            loop.at(arrival, loop.world, self._arrive, pending, fate)
        return pending.answer

    def _arrive(self, pending: _Pending, fate: Fate) -> None:
        """A request has come to the broker, whoever still waits for it."""
        if not self.open and self._life.alive and self._fates.chance.random() < 0.3:
            self._fates.note(self._label, type(pending.exchange).__name__, "dropped with its connection")
            return
        if self._busy:
            self._queue.append((pending, fate))
            return
        self._busy = True
        self._serve(pending, fate)

    def _serve(self, pending: _Pending, fate: Fate) -> None:
        exchange = pending.exchange
        if isinstance(exchange, TypedExchange):
            exchange = exchange.request
        if type(exchange) is FetchExchange:
            self._fetch(pending, exchange, fate)
            return
        if self._is_killed(exchange, carried_out=False):
            return
        brokers, refusals = self._brokers, _REFUSALS.get(type(exchange).__name__)
        if fate is Fate.REFUSED and refusals is not None:
            brokers.refusal = self._fates.chance.choice(refusals)
        try:
            answer: Any = exchange.answer() if type(exchange) is Ask else brokers.handle(exchange, self._node)
        except ApplianceError as error:
            answer = error
        brokers.refusal = None
        if type(exchange) is not Ask:
            self._fates.trace.append(
                (self._loop.time(), self._life.name, self._label, type(exchange).__name__, brokers.noted)
            )
            brokers.noted = ""
        if not self._is_killed(exchange, carried_out=True):
            self._reply(pending, answer, fate)

    def _is_killed(self, exchange: object, *, carried_out: bool) -> bool:
        """True if a trap has killed the process at this request."""
        if self._life.trap is None or not self._life.alive:
            return False
        self._life.trap(type(exchange).__name__, carried_out)
        return not self._life.alive

    def _fetch(self, pending: _Pending, exchange: FetchExchange, fate: Fate) -> None:
        if fate is Fate.REFUSED:
            self._brokers.refusal = self._fates.chance.choice(_REFUSALS["FetchExchange"])
        self._fetching.fetch(exchange, self._node, self._loop, lambda answer: self._reply(pending, answer, fate))
        self._brokers.refusal = None

    def _reply(self, pending: _Pending, answer: Any, fate: Fate) -> None:
        self._busy = bool(self._queue)
        if self._queue:
            self._loop.at(self._loop.time(), self._loop.world, self._serve, *self._queue.popleft())
        if self._mute:
            return
        if self._node in self._brokers.away:
            self._mute = self._cut = True
            self._loop.at(self._loop.time() + TIMEOUTS.answer, self._life, self._overdue, pending)
            return
        if fate is Fate.ANSWER_LOST:
            self._mute = self._cut = True
            self._loop.at(self._loop.time() + self._fates.latency(), self._life, self._reset)
            return
        delay = self._fates.latency()
        if fate is Fate.ANSWERED_LATE:
            delay += self._fates.chance.choice((0.1, 1.0, 3.0))
        self._answer_at = max(self._answer_at + _TICK, self._loop.time() + delay)
        self._loop.at(self._answer_at, self._life, self._answered, pending, answer)

    def _answered(self, pending: _Pending, answer: Any) -> None:
        if not self.open:
            return
        assert self._pending.popleft() is pending, "answers come in order"
        if pending.timer is not None:
            pending.timer.cancel()
        now = self._loop.time()
        self.newest = Transfer(now, now, 0)
        if pending.answer.done():
            return
        if isinstance(answer, ApplianceError):
            pending.answer.set_exception(answer)
            pending.answer.exception()
        else:
            if self._life.answered is not None:
                self._life.answered(self._brokers, pending.exchange, answer)
            pending.answer.set_result(answer)

    def close(self) -> None:
        self._break(Unreachable(f"the connection to {self._label} was closed"))

    def _overdue(self, pending: _Pending) -> None:
        self._break(Unreachable(f"{self._label} did not answer a {type(pending.exchange).__name__} in time"))

    def _reset(self) -> None:
        self._break(Unreachable(f"{self._label} closed the connection"))

    def _break(self, error: Unreachable) -> None:
        if self.open:
            self.open = False
            for pending in self._pending:
                if pending.timer is not None:
                    pending.timer.cancel()
                if not pending.answer.done():
                    pending.answer.set_exception(error)
                    pending.answer.exception()
            self._pending.clear()


class SimulatedCluster:
    """A cluster as one process knows it: its connections, and the leaders."""

    def __init__(self, brokers: Brokers, side: Side, life: Life, fates: Fates) -> None:
        self.side = side
        self._brokers, self._life, self._fates = brokers, life, fates
        self._connections: dict[tuple[int, str], SimulatedConnection] = {}
        self._coordinators: dict[str, int] = {}

    async def metadata(self, topics: Sequence[str] | None) -> Metadata:
        connection = await self.any_broker()
        fates = self._fates
        behind = fates.chance.randrange(3) if fates.lag and fates.chance.random() < fates.lag else 0
        ask: Any = Ask("Metadata", lambda: self._brokers.metadata(topics, behind))
        answer: Metadata = await connection.ask(ask, TIMEOUTS.small_answer)
        return answer

    async def broker(self, node: int, purpose: str = "control") -> SimulatedConnection:
        if node == NOBODY:
            raise BrokerBusy(f"a partition of the {self.side} cluster has no leader now", "LEADER_NOT_AVAILABLE")
        connection = self._connections.get((node, purpose))
        if connection is None or not connection.open:
            await asyncio.sleep(TIMEOUTS.connect if node in self._brokers.away else self._fates.latency())
            if node in self._brokers.away or self._fates.next() in (Fate.LOST, Fate.SILENT, Fate.LATE):
                raise Unreachable(f"broker {node} of the {self.side} cluster is not reached")
            again = self._connections.get((node, purpose))
            if again is not None and again.open:
                return again
            label = f"{self.side} {node} {purpose}"
            connection = SimulatedConnection(self._brokers, node, self._life, self._fates, label)
            self._connections[node, purpose] = connection
        return connection

    async def any_broker(self) -> SimulatedConnection:
        there = tuple(node for node in NODES if node not in self._brokers.away)
        return await self.broker(self._fates.chance.choice(there or NODES))

    async def controller(self) -> SimulatedConnection:
        return await self.broker(NODES[0])

    async def coordinator(self, transactional_id: str) -> SimulatedConnection:
        node = self._coordinators.get(transactional_id)
        if node is None:
            connection = await self.any_broker()
            lags = bool(self._fates.lag) and self._fates.chance.random() < self._fates.lag
            ask: Any = Ask("FindCoordinator", lambda: self._brokers.coordinator.node(transactional_id, lags))
            node = self._coordinators[transactional_id] = await connection.ask(ask, TIMEOUTS.small_answer)
        return await self.broker(node, "transactions")

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()

    @property
    def settings(self) -> "SimulatedCluster":
        """Of these the side alone is asked."""
        return self

    def forget_coordinator(self, transactional_id: str) -> None:
        self._coordinators.pop(transactional_id, None)
