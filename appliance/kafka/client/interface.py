"""The narrow interface between the engine and a Kafka cluster: all calls that copying needs.

``KafkaCluster`` and ``BrokerConnection`` are the real ones; ``tests/simulation`` has others, in memory. The copying
code uses these protocols alone, and takes the time from its event loop: so every order of answers, every loss and every
crash can be played without a broker, on a simulated clock.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kio.static.protocol import RequestPayload

from appliance.kafka.protocol.metadata import Metadata
from appliance.kafka.protocol.wire import Answer, Exchange, Response


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a broker, in seconds.

    ``connect`` is for finding an address and reaching it, ``answer`` for any answer, and ``small_answer`` for one
    without work for the broker: a silently dead connection is often noticed by the next small question.
    """

    connect: float = 10.0
    answer: float = 30.0
    small_answer: float = 10.0


TIMEOUTS = Timeouts()


class Transfer(NamedTuple):
    """The times of an answer's first and last byte, by the event loop's clock; and its size."""

    began: float
    ended: float
    bytes: int


class Connection(Protocol):
    """An open connection to one broker, which answers in the order of the requests; a broken one never recovers."""

    @property
    def timeouts(self) -> Timeouts:
        """The timeouts of the broker."""

    @property
    def offered(self) -> Mapping[int, tuple[int, int]]:
        """The lowest and highest version of each API by its key."""

    @property
    def newest(self) -> Transfer:
        """The newest answer's times and size."""

    async def call(
        self, request: RequestPayload, response_type: type[Response], timeout: float | None = None
    ) -> Response:
        """Send a request, and wait for its answer."""

    async def ask(self, exchange: Exchange[Answer], timeout: float | None = None) -> Answer:
        """Send a request and wait for its answer."""

    async def send(self, exchange: Exchange[Answer], timeout: float | None = None) -> "asyncio.Future[Answer]":
        """Send a request, in order with the ones before it, and give the future of its answer.

        The future fails, and the connection breaks, when the answer does not come within ``timeout`` seconds; without
        one, within those of the connection's own ``timeouts``.
        """


class Cluster(Protocol):
    """One cluster, on one event loop: metadata, and connections that are opened on demand.

    A connection belongs to a *purpose*, since requests on one connection wait for each other: a Fetch that waits at
    the broker for data must not hold up a Produce.
    """

    @property
    def side(self) -> str:
        """The cluster as texts name it: source or destination, or its id in an order."""

    async def metadata(self, topics: Sequence[str] | None) -> Metadata:
        """Live metadata of the named topics (None: all) from any broker that answers."""

    async def broker(self, node: int, purpose: str = "control") -> Connection:
        """A connection to a broker by its node id."""

    async def any_broker(self) -> Connection:
        """A connection to whichever broker answers first."""

    async def controller(self) -> Connection:
        """A connection to the broker that takes administrative requests."""

    async def coordinator(self, transactional_id: str) -> Connection:
        """A connection to the transaction coordinator of an id, which is remembered until ``forget_coordinator``."""

    def forget_coordinator(self, transactional_id: str) -> None:
        """Look it up again the next time: the coordinator may have moved."""
