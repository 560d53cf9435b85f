"""A broker that throttles a connection gets no requests meanwhile (KIP-219), and does not count as silent."""

import asyncio
import datetime
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v3 import FindCoordinatorResponse
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.produce.v9 import ProduceResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from appliance.errors import Unreachable
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.fetch import FetchExchange, FetchLimits
from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol.metadata import Everything, EverythingExchange, request
from appliance.kafka.protocol.wire import TypedExchange, throttle_seconds
from appliance.settings.target import Target
from tests.support.scripted_broker import framed, metadata_answer
from tests.support.virtual_time import run


class Wire(asyncio.Transport):
    """A transport that notes the times of writes."""

    def __init__(self) -> None:
        super().__init__({"socket": socket.socket()})
        self.written: list[float] = []

    def write(self, data: object) -> None:  # noqa: ARG002
        self.written.append(asyncio.get_running_loop().time())

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        self.get_extra_info("socket").close()


@dataclass(frozen=True)
class Asked:
    """A request; its answer's content is the throttle time in milliseconds."""

    name: str = "Asked"

    def frame(self, correlation: int, client_id: str) -> bytes:  # noqa: ARG002
        return b"asked"

    def answer(self, frame: bytearray, correlation: int) -> "Answered":  # noqa: ARG002
        return Answered(datetime.timedelta(milliseconds=struct.unpack(">i", frame)[0]))


@dataclass(frozen=True)
class Answered:
    throttle_time: datetime.timedelta


class Ends:
    """A connection to a broker that the test plays."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.connection = BrokerConnection(Target("broker.example", 9092), "test")
        self.connection.connection_made(self.wire)

    async def answer(self, throttled: float) -> None:
        """Answer the oldest request, and throttle the connection for this number of seconds."""
        frame = struct.pack(">ii", 4, int(throttled * 1000))
        self.connection.get_buffer(-1)[: len(frame)] = frame
        self.connection.buffer_updated(len(frame))
        await asyncio.sleep(0)

    async def exchange(self, throttled: float) -> None:
        """A request with its answer."""
        await self.connection.send(Asked())
        await self.answer(throttled)


def ended_at(play: Callable[[Ends], Awaitable[object]], match: str) -> float:
    """The time at which what is played over a new connection ends with this error."""

    async def played() -> float:
        with pytest.raises(Unreachable, match=match):
            await play(Ends())
        return asyncio.get_running_loop().time()

    return run(played())


async def written_after(*throttled: float) -> list[float]:
    """The times at which requests were written, with these answers; the last request has no answer."""
    ends = Ends()
    for seconds in throttled:
        await ends.exchange(seconds)
    await ends.connection.send(Asked())
    await ends.connection.close()
    return ends.wire.written


@pytest.mark.parametrize(
    ("throttled", "written"),
    [
        ((0.0, 0.0), [0.0, 0.0, 0.0]),
        ((5.0,), [0.0, 5.0]),
        ((5.0, 2.0), [0.0, 5.0, 7.0]),
        ((1.0, 1.0, 0.0), [0.0, 1.0, 2.0, 2.0]),
        ((100.0,), [0.0, 100.0]),  # longer than the timeout of any request
    ],
)
def test_nothing_is_sent_before_the_time_that_the_broker_has_said(
    throttled: tuple[float, ...], written: list[float]
) -> None:
    assert run(written_after(*throttled)) == pytest.approx(written)


def test_of_two_times_the_later_end_holds() -> None:
    async def both() -> list[float]:
        ends = Ends()
        await ends.connection.send(Asked())
        await ends.exchange(9.0)
        await ends.answer(3.0)
        await ends.connection.send(Asked())
        await ends.connection.close()
        return ends.wire.written

    assert run(both()) == pytest.approx([0.0, 0.0, 9.0])


def test_a_request_under_way_has_its_patience_from_the_end_of_the_time_on() -> None:
    async def under_way(ends: Ends) -> None:
        await ends.connection.send(Asked(), 10.0)
        answer = await ends.connection.send(Asked(), 10.0)
        await asyncio.sleep(4.0)
        await ends.answer(60.0)
        await answer

    assert ended_at(under_way, "did not answer a Asked within 10 s") == pytest.approx(74.0)


def test_a_request_that_waits_to_be_sent_learns_at_once_that_the_connection_has_ended() -> None:
    async def waiting(ends: Ends) -> None:
        await ends.exchange(60.0)
        sending = asyncio.create_task(ends.connection.send(Asked()))
        await asyncio.sleep(1.0)
        await ends.connection.close()
        await sending

    assert ended_at(waiting, "was closed") == pytest.approx(1.0)


def test_a_full_buffer_is_waited_for_from_the_end_of_the_time_on() -> None:
    async def full(ends: Ends) -> None:
        await ends.exchange(60.0)
        ends.connection.pause_writing()
        await ends.connection.send(Asked(), 10.0)

    assert ended_at(full, "did not read what it was sent within 10 s") == pytest.approx(70.0)


FETCHED = struct.pack(">i", 7) + b"\0" + struct.pack(">ihi", 1500, 0, 0) + b"\1\0"
FETCH = FetchExchange((), FetchLimits(1, 0.5), by_id=True, names={})
PRODUCED = ProduceResponse(responses=(), throttle_time=milliseconds(1.5))
FOUND = FindCoordinatorResponse(
    throttle_time=milliseconds(1.5),
    error_code=ErrorCode.none,
    error_message=None,
    node_id=BrokerId(1),
    host="",
    port=i32(1),
)


ALL_TOPICS = EverythingExchange(Everything(), TypedExchange(request(None), MetadataResponse))


@pytest.mark.parametrize(
    "answer",
    [
        FETCH.answer(bytearray(FETCHED), 7),
        ALL_TOPICS.answer(bytearray(framed(metadata_answer((), throttled=1.5), 7)[4:]), 7),
        PRODUCED,
        FOUND,
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_every_kind_of_answer_says_for_how_long(answer: object) -> None:
    assert throttle_seconds(answer) == 1.5


def test_an_answer_that_cannot_say_it_throttles_nothing() -> None:
    assert throttle_seconds(b"") == 0


def test_case_1024_a_broker_silences_its_connection_for_five_minutes_at_most() -> None:
    # One answer silenced it for 24.9 days.
    longest = (2**31 - 1) / 1000
    assert run(written_after(longest, longest)) == pytest.approx([0.0, 300.0, 600.0])

    async def under_way(ends: Ends) -> None:
        await ends.connection.send(Asked(), 10.0)
        answer = await ends.connection.send(Asked(), 10.0)
        await ends.answer(longest)
        await answer

    assert ended_at(under_way, "did not answer") == pytest.approx(310.0)
