"""A proxy before one broker that knows which request passes, and can break the connection just there, or silence it.

Both ways carry frames, ``size i32 | rest``; a request's rest begins with its API key, i16. A broker answers the
requests of a connection in their order.
"""

import asyncio
import collections
import enum
import struct
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from appliance.settings.target import Target
from tests.faults.proxy import Proxy, Tls, Wire

_SIZE = struct.Struct(">i")
_API_KEY = struct.Struct(">h")


class Api(enum.IntEnum):
    """API keys (https://kafka.apache.org/protocol#protocol_api_keys)."""

    PRODUCE = 0
    OFFSET_COMMIT = 8
    CREATE_TOPICS = 19
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    END_TXN = 26


class Moment(enum.Enum):
    """The moment at which the connection is reset, or goes silent for ever."""

    IN_REQUEST = "half of the request has passed"
    BEFORE_ANSWER = "the broker has answered, and the answer has not passed"
    SILENT = "the request does not pass, nor anything after it, and neither end is told"


@dataclass(slots=True)
class Tripwire:
    """The trap for the next connection; shared by the proxies of all brokers, and sprung once."""

    sprung: asyncio.Event = field(default_factory=asyncio.Event)
    _armed: tuple[Api, Moment] | None = None

    def arm(self, api: Api, moment: Moment) -> None:
        """Break the next connection that comes to that."""
        self._armed = api, moment
        self.sprung.clear()

    def springs(self, api_key: int, moment: Moment) -> bool:
        """True if the trap springs here and now."""
        if self._armed != (api_key, moment):
            return False
        self._armed = None
        self.sprung.set()
        return True


@dataclass(slots=True)
class StepTrap(Tripwire):
    """Strikes at the n-th request that changes something: it does not pass, or it does, and the answer does not.

    Where it ``passes``, all goes on. ``steps`` counts such requests, those of ``apis`` alone.
    """

    steps: dict[Moment, int] = field(default_factory=lambda: {Moment.SILENT: 0, Moment.BEFORE_ANSWER: 0})
    apis: Collection[Api] = frozenset(Api)
    _step: tuple[int, Moment] | None = None
    _strike: Callable[[], None] = lambda: None
    _passes: bool = False

    def strike_at(self, step: int, moment: Moment, strike: Callable[[], None], passes: bool = False) -> None:
        """Count anew, and strike at this step."""
        self.steps = dict.fromkeys(self.steps, 0)
        self._step, self._strike, self._passes = (step, moment), strike, passes
        self.sprung.clear()

    def springs(self, api_key: int, moment: Moment) -> bool:
        """True if the trap springs here and now, right after it has struck."""
        if moment not in self.steps or api_key not in self.apis:
            return False
        self.steps[moment] += 1
        if self._step != (self.steps[moment], moment):
            return False
        self._step = None
        self._strike()
        self.sprung.set()
        return not self._passes


class KafkaProxy(Proxy):
    """Carries requests and answers frame by frame."""

    def __init__(self, listen: Target, target: Target, tls: Tls | None, tripwire: Tripwire) -> None:
        super().__init__(listen, target, tls)
        self._tripwire = tripwire
        self._asked: weakref.WeakKeyDictionary[Wire, collections.deque[int]] = weakref.WeakKeyDictionary()

    async def _there(self, wire: Wire) -> None:
        while True:
            frame = await _frame(wire.near[0])
            (api_key,) = _API_KEY.unpack_from(frame, _SIZE.size)
            if self._tripwire.springs(api_key, Moment.IN_REQUEST):
                await self.pass_on(wire, wire.far[1], frame[: len(frame) // 2])
                raise wire.reset()
            if self._tripwire.springs(api_key, Moment.SILENT):
                wire.dead = True
            self._asked.setdefault(wire, collections.deque()).append(api_key)
            await self.pass_on(wire, wire.far[1], frame)

    async def _back(self, wire: Wire) -> None:
        while True:
            frame = await _frame(wire.far[0])
            if self._tripwire.springs(self._asked[wire].popleft(), Moment.BEFORE_ANSWER):
                raise wire.reset()
            await self.pass_on(wire, wire.near[1], frame)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """A frame, its size included."""
    head = await reader.readexactly(_SIZE.size)
    return head + await reader.readexactly(_SIZE.unpack(head)[0])
