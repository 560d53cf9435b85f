"""A cluster as a set of connections: found from the bootstrap list, followed through live metadata."""

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence

from kio.schema.find_coordinator.v3 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.metadata.v11 import MetadataResponse
from kio.static.primitive import i8

from appliance.clock import loop_seconds
from appliance.errors import BrokerBusy, Unreachable
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.dial import Accept, Resolve, accept_all
from appliance.kafka.client.interface import TIMEOUTS, Timeouts
from appliance.kafka.client.login import Login, open_session
from appliance.kafka.protocol import metadata
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import NOBODY, Metadata
from appliance.kafka.protocol.older import exchange
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings

log = logging.getLogger("appliance.kafka")

_TRANSACTION_KEY = i8(1)
_ANOTHER_EVERY = 20
"""Interval, in questions to any broker, of one that goes to a broker without an open connection."""

_AVOIDED_SECONDS = 60.0
"""Time for which an unreachable broker is asked only if no other answers, in seconds."""


class KafkaCluster:
    """The real ``Cluster``."""

    def __init__(
        self,
        settings: ClusterSettings,
        resolve: Resolve,
        client_id: str,
        way: str = "",
        timeouts: Timeouts = TIMEOUTS,
        accept: Accept = accept_all,
    ) -> None:
        """``way`` is added to the text of an error when nothing answers: how the cluster is reached."""
        self.settings = settings
        self._way = way
        self._resolve = resolve
        self._accept = accept
        self._client_id = client_id
        self._timeouts = timeouts
        self._login = Login(settings)
        self._everything = metadata.Everything()
        self._brokers: dict[int, Target] = {}
        self._coordinators: dict[str, int] = {}
        self._connections: dict[tuple[Target, str], BrokerConnection] = {}
        self._asked = 0
        self._failed: dict[Target, float] = {}
        self._dials: dict[tuple[Target, str], asyncio.Task[BrokerConnection]] = {}

    @property
    def side(self) -> str:
        """See ``Cluster``."""
        return str(self.settings.place)

    async def __aenter__(self) -> "KafkaCluster":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections, and end the dials that are under way."""
        for dial in (dials := list(self._dials.values())):
            dial.cancel()
        await asyncio.gather(*dials, return_exceptions=True)
        connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            await connection.close()
        await self._login.close()

    async def metadata(self, topics: Sequence[str] | None) -> Metadata:
        """See ``Cluster``; the first broker that answers may raise what ``open_session`` does."""
        connection = await self.any_broker()
        if topics is None:
            everything = exchange(connection.offered, metadata.request(None), MetadataResponse)
            answer = await connection.ask(metadata.EverythingExchange(self._everything, everything))
        else:
            request = metadata.request(topics)
            answer = metadata.parse(await connection.call(request, MetadataResponse, self._timeouts.small_answer))
        self._brokers = dict(answer.brokers)
        return answer

    async def broker(self, node: int, purpose: str = "control") -> BrokerConnection:
        """See ``Cluster``."""
        if node == NOBODY:
            raise BrokerBusy(f"a partition of the {self.side} cluster has no leader now", "LEADER_NOT_AVAILABLE")
        if node not in self._brokers:
            await self.metadata([])
        if node not in self._brokers:
            raise Unreachable(f"the {self.side} cluster has no broker {node} now")
        return await self._connection(self._brokers[node], purpose)

    async def any_broker(self) -> BrokerConnection:
        """See ``Cluster``: one that is open comes first, then known ones, then the bootstrap list."""
        failure: Unreachable | None = None
        for target in self._candidates():
            try:
                return await self._connection(target, "control")
            except Unreachable as error:
                self._failed[target] = loop_seconds()
                failure = error
        variable = self.settings.variable("BROKER_SERVERS")
        raise Unreachable(
            f"no broker of the {self.side} cluster answers: {failure} ({variable}{self._way})"
        ) from failure

    async def controller(self) -> BrokerConnection:
        """See ``Cluster``."""
        return await self.broker((await self.metadata([])).controller)

    async def coordinator(self, transactional_id: str) -> BrokerConnection:
        """See ``Cluster``; a new cluster makes its transaction topic at the first question, and is busy until then."""
        node = self._coordinators.get(transactional_id)
        if node is None:
            connection = await self.any_broker()
            request = FindCoordinatorRequest(key=transactional_id, key_type=_TRANSACTION_KEY)
            answer = await connection.call(request, FindCoordinatorResponse, self._timeouts.small_answer)
            check(answer.error_code, f"find the coordinator of {transactional_id}")
            node = self._coordinators[transactional_id] = int(answer.node_id)
        return await self.broker(node, "transactions")

    def forget_coordinator(self, transactional_id: str) -> None:
        """See ``Cluster``."""
        self._coordinators.pop(transactional_id, None)

    def _candidates(self) -> Iterable[Target]:
        """Brokers with an open connection come first; but occasionally another one.

        A broker that answers may be cut off from the others, and return outdated metadata.
        """
        targets = {target for target, purpose in self._connections if purpose == "control"}
        open_now = [t for t in targets if self._connections[(t, "control")].open]
        others = [*self._brokers.values()]
        random.shuffle(open_now)
        random.shuffle(others)
        self._asked += 1
        recently = loop_seconds() - _AVOIDED_SECONDS
        another = [t for t in others if t not in open_now and self._failed.get(t, recently) <= recently]
        first = another[:1] if self._asked % _ANOTHER_EVERY == 0 else []
        return dict.fromkeys([*first, *open_now, *others, *self.settings.bootstrap])

    async def _connection(self, target: Target, purpose: str) -> BrokerConnection:
        """The open connection, or a new one: all callers wait for the same dial, and share its error."""
        key = (target, purpose)
        connection = self._connections.get(key)
        if connection is not None and connection.open:
            return connection
        if key not in self._dials:
            dial = self._dials[key] = asyncio.create_task(self._dial(target, purpose), name=f"dial {target}")
            dial.add_done_callback(lambda _: self._dials.pop(key))
        return await asyncio.shield(self._dials[key])

    async def _dial(self, target: Target, purpose: str) -> BrokerConnection:
        way = self._resolve, self._client_id, self._timeouts, self._accept
        connection = await open_session(target, self._login, *way)
        connection.on_silence = self._doubt
        self._connections[target, purpose] = connection
        log.debug("broker connected", extra={"fields": {"broker": str(target), "purpose": purpose}})
        return connection

    def _doubt(self, since: float) -> None:
        """Drop the connections that were silent since then, and that nobody waits for.

        The cause that silently broke one connection may have broken others, and each would take as long to be noticed.
        """
        for connection in self._connections.values():
            if connection.open and connection.idle_since(since):
                connection.abandon("lay idle while another one broke")
