"""The way of the SQL's jobs to lanes on other hosts, on real sockets, without Spark."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from appliance.engine.control.assignment import Hello, Question, encode_message
from appliance.engine.control.client import control_client
from appliance.engine.control.connection import dialled
from appliance.engine.control.server import ControlServer, TransformAddresses
from appliance.errors import ApplianceError
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.sql.flight import connection
from appliance.sql.flight.connection import read_message
from appliance.sql.flight.messages import encode
from appliance.sql.flight.service import TransformService
from appliance.sql.jobs.job_ends import Attempt, LanesOnHosts, connected
from appliance.sql.jobs.listener import serving_hosts
from tests.spark.test_control import ON_A_PORT, A, answer, endpoint, server
from tests.support.sql import range_of

TASK = 0
ONE, OTHER = Target("10.0.0.2", 4000), Target("10.0.0.3", 4000)


def untold(_: str, error: ApplianceError | None) -> None:
    raise AssertionError(error)


@dataclass(frozen=True, slots=True)
class Serves:
    """A task that serves jobs, and what their ends know."""

    control: ControlServer
    service: TransformService
    lanes: LanesOnHosts

    @property
    def address(self) -> Target:
        """The task's address, by the driver."""
        found = self.control.addresses.find(Question(TASK, 0))
        assert found
        return found


@contextlib.asynccontextmanager
async def trying(control: ControlServer, attempt: int) -> AsyncIterator[Serves]:
    """A try of the task, once the driver knows where it serves."""
    service = TransformService(True, untold)
    assert isinstance(control.address, Target)
    lanes = LanesOnHosts(control.address, Secret(control.token), 1)
    before = control.addresses._serving.get(TASK)
    async with (
        control_client(endpoint(control), Hello(TASK, attempt)) as client,
        serving_hosts(service, TASK, client, control.token),
    ):
        while control.addresses._serving.get(TASK) in (None, before):
            await asyncio.sleep(0.01)
        yield Serves(control, service, lanes)


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Serves]:
    """A task that serves jobs, and the driver."""
    async with server(ON_A_PORT) as control:
        control.assign([A])
        async with trying(control, 1) as made:
            yield made


def of_job(stage: int) -> Attempt:
    return Attempt(TASK, stage, stage)


def asked_for_ranges(lanes: LanesOnHosts, attempt: Attempt) -> list[tuple[int, int]]:
    """The offsets of the ranges that the source of a job gets."""
    with connected(lanes, attempt) as lane:
        lane.send(encode({"role": "source", "attempt": attempt.number}))
        fields, _ = lane.read()
        return [(each["start"], each["end"]) for each in fields["ranges"]]


async def waiting_end(of: Serves) -> asyncio.Task[list[tuple[int, int]]]:
    """The end of a job that waits for ranges."""
    waiting = asyncio.create_task(asyncio.to_thread(asked_for_ranges, of.lanes, of_job(1)))
    while not of.service.connections:
        await asyncio.sleep(0.01)
    return waiting


async def test_the_ends_of_job_after_job_find_the_lanes_by_the_driver() -> None:
    async with serving() as made:
        asking = asyncio.create_task(made.service.transform([range_of([b"1", b"2"])]))
        for stage in (1, 2):  # the second takes over what the first one has not confirmed
            assert await asyncio.to_thread(asked_for_ranges, made.lanes, of_job(stage))
        asking.cancel()


async def test_an_end_is_let_go_when_its_task_is_gone() -> None:
    async with server(ON_A_PORT) as control:
        control.assign([A])
        async with trying(control, 1) as made:
            waiting = await waiting_end(made)
        with pytest.raises(EOFError):
            await waiting
        with pytest.raises(EOFError):
            await asyncio.to_thread(connected, made.lanes, of_job(2))


async def test_case_510_an_end_that_waits_for_a_silent_process_is_let_go_once_another_has_its_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Otherwise its job would keep a slot that the other one's jobs need.
    monkeypatch.setattr(connection, "_ASK_SECONDS", 0.05)
    async with serving() as silent:
        waiting = await waiting_end(silent)
        async with trying(silent.control, 2) as made:
            with pytest.raises(EOFError):
                await waiting
            asking = asyncio.create_task(made.service.transform([range_of([b"1"])]))
            assert await asyncio.to_thread(asked_for_ranges, made.lanes, of_job(2)) == [(0, 1)]
            asking.cancel()


async def test_case_511_an_end_that_waits_for_a_silent_process_is_let_go_once_its_job_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Before, it kept its slot as long as the process was silent, and with fewer tasks nobody took that one's place.
    monkeypatch.setattr(connection, "_ASK_SECONDS", 0.05)
    async with serving() as silent:
        waiting = await waiting_end(silent)
        silent.control.stop()
        with pytest.raises(EOFError):
            await waiting


async def test_the_drivers_connection_to_a_task_ends_when_another_process_has_the_task() -> None:
    async with serving() as silent:
        reader, _ = await silent.control.addresses.dial(TASK, silent.control.token)
        async with trying(silent.control, 2):
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await read_message(reader)


async def test_a_task_that_serves_nobody_is_not_dialled() -> None:
    with pytest.raises(OSError, match="task 0 does not serve yet"):
        await TransformAddresses().dial(TASK, "of this run")


async def test_strangers_and_ends_of_another_task_get_nothing_from_the_listener_of_a_task() -> None:
    async with serving() as made:
        at = made.address
        with pytest.raises(ssl.SSLError):
            await dialled(at, "of another run")
        for words in (b"\xff\xfe\xff\xfe\n", encode_message(Hello(TASK, 1))):
            assert await answer(await asyncio.open_connection(at.host, at.port), words) == b""
        for hello in (Hello(TASK + 1, 1), Question(TASK, 1)):
            stream = await dialled(at, made.control.token)
            assert await answer(stream, encode_message(hello)) == b""
        asking = asyncio.create_task(made.service.transform([range_of([b"1"])]))
        assert await asyncio.to_thread(asked_for_ranges, made.lanes, of_job(1)) == [(0, 1)]
        asking.cancel()


async def test_whoever_asks_the_driver_for_something_else_after_a_question_is_let_go() -> None:
    async with serving() as made:
        stream = await dialled(made.lanes.driver, made.control.token)
        assert await answer(stream, encode_message(Question(TASK + 1, 1)) + b'{"stop":true}\n') == b"{}\n"


def test_a_job_belongs_to_the_process_that_its_first_question_has_found() -> None:
    addresses = TransformAddresses()
    first, second, third = (Question(TASK, stage) for stage in (1, 2, 3))
    assert addresses.find(first) is None
    addresses.serves(TASK, ONE)
    assert addresses.find(first) is None  # its other end may have found nothing
    assert addresses.find(second) == addresses.find(second) == Target("10.0.0.2", 4000)
    addresses.serves(TASK, OTHER)
    assert addresses.find(second) is None
    assert addresses.find(third) == Target("10.0.0.3", 4000)
    assert addresses.find(second) is None
    addresses.end_task(TASK)
    assert addresses.find(third) is None


def test_another_process_at_the_same_address_is_another_one() -> None:
    addresses = TransformAddresses()
    addresses.serves(TASK, ONE)
    assert addresses.find(Question(TASK, 1))
    addresses.end_task(TASK)
    addresses.serves(TASK, Target(ONE.host, ONE.port))
    assert addresses.find(Question(TASK, 1)) is None
