"""The lane's process between the two ends of a job, which come in any order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from appliance.engine.control.client import DriverEndpoint, transform_socket
from appliance.engine.model.ranges import Failure, Outcome, Range
from appliance.errors import ApplianceError, ProcessFailed
from appliance.kafka.protocol.metadata import Partition
from appliance.settings.secret import Secret
from appliance.settings.values import OnTransformError
from appliance.spark.configuration import ROWS_AT_ONCE
from appliance.sql.flight import ends
from appliance.sql.flight.connection import Connection, read_message
from appliance.sql.flight.messages import LEAD, Fields, decode, encode, encode_ranges
from appliance.sql.flight.service import JobProgress, TransformService
from appliance.sql.jobs.listener import transforming
from tests.support.clock import Clock
from tests.support.patience import PATIENCE
from tests.support.record_batches import outgoing_of, record

NOTHING_FAILED = encode({"done": 0, "failed": [], "grown": False, "batches": []})
InWork = tuple[TransformService, list[asyncio.Task[list[Outcome]]], asyncio.StreamWriter, asyncio.StreamWriter]


def one_record(partition: int = 0) -> Range:
    return Range(Partition("orders", partition), 0, 1, outgoing_of([record(0, b"a")], 1), 10**6)


def quiet(_: str, error: ApplianceError | None) -> None:
    assert error is None


async def test_case_505_a_sink_whose_source_was_served_by_an_earlier_process_is_let_go(tmp_path: Path) -> None:
    # It waited for ever with a slot of Spark; after two such, the task's SQL stood still.
    service, socket = TransformService(True, quiet), tmp_path / "transform-0"
    async with service.serving(socket):
        late, says_late = await asyncio.open_unix_connection(str(socket))
        says_late.write(encode({"role": "sink", "attempt": 7}))
        source, says = await asyncio.open_unix_connection(str(socket))
        says.write(encode({"role": "source", "attempt": 8}))
        sink, says_done = await asyncio.open_unix_connection(str(socket))
        says_done.write(encode({"role": "sink", "attempt": 8}))
        asked = asyncio.create_task(service.transform([one_record()]))
        assert (await read_message(source))[0]["ranges"]
        assert (await read_message(sink))[0]["ranges"]
        later, says_later = await asyncio.open_unix_connection(str(socket))
        says_later.write(encode({"role": "sink", "attempt": 6}))
        assert (await late.read(), await later.read()) == (b"", b"")
        says_done.write(NOTHING_FAILED)
        (outcome,) = await asked
        assert outcome.filtered == 1
        for writer in (says_late, says_later, says, says_done):
            writer.close()


@pytest.mark.parametrize("reaction", OnTransformError)
async def test_a_task_stops_at_a_record_that_fails_or_goes_on_behind_it_as_the_driver_says(
    reaction: OnTransformError, tmp_path: Path
) -> None:
    control = tmp_path / "control"
    serving = transforming(DriverEndpoint(str(control), "token", "run", 1, str(reaction)), 0, cast("Any", None))
    assert serving
    socket = transform_socket(control, 0)
    async with serving(quiet) as service:
        explaining, explains = await driver(socket)
        _, says = await asyncio.open_unix_connection(str(socket))
        says.write(encode({"role": "source", "attempt": 0}))
        _, says_done = await asyncio.open_unix_connection(str(socket))
        says_done.write(encode({"role": "sink", "attempt": 0}))
        asked = asyncio.create_task(service.transform([one_record()]))
        says_done.write(encode({"done": 0, "failed": [0], "grown": False, "batches": []}))
        assert (await read_message(explaining))[0]["ranges"]
        explains.write(encode({"topic": "orders", "partition": 0, "offset": 0, "reason": "no number"}))
        (outcome,) = await asked
        for writer in (explains, says, says_done):
            writer.close()
    failed = Failure(0, "no number")
    expected = (failed, (), 0) if reaction is OnTransformError.STOP else (None, (failed,), 1)
    assert (outcome.stop, outcome.failures, outcome.next_offset) == expected


async def test_case_573_a_driver_that_has_dialled_again_is_asked_for_reasons_when_its_first_connection_ends(
    tmp_path: Path,
) -> None:
    # The end of the first was taken for the driver's: the record got no reason, and its lane waited without end.
    service, socket = TransformService(True, quiet), tmp_path / "transform-0"
    async with service.serving(socket):
        first, says_first = await driver(socket)
        again, says_again = await driver(socket)
        says_first.write_eof()
        assert await first.read() == b""
        source, says = await asyncio.open_unix_connection(str(socket))
        says.write(encode({"role": "source", "attempt": 0}))
        _, says_done = await asyncio.open_unix_connection(str(socket))
        says_done.write(encode({"role": "sink", "attempt": 0}))
        asked = asyncio.create_task(service.transform([one_record()]))
        assert (await read_message(source))[0]["ranges"]
        says_done.write(encode({"done": 0, "failed": [0], "grown": False, "batches": []}))
        assert (await read_message(again))[0]["ranges"][0]["start"] == 0
        says_again.write(encode({"topic": "orders", "partition": 0, "offset": 0, "reason": "no number"}))
        (outcome,) = await asked
        assert outcome.stop == Failure(0, "no number")
        for writer in (says_first, says_again, says, says_done):
            writer.close()


async def driver(socket: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection of the driver, which the service has taken in."""
    reader, writer = await asyncio.open_unix_connection(str(socket))
    writer.write(encode({"role": "driver"}) + encode({"ended": "", "of_record": False}))
    assert (await read_message(reader))[0] == {}
    return reader, writer


@contextlib.asynccontextmanager
async def in_work(socket: Path, clock: Clock, records: int) -> AsyncIterator[InWork]:
    """A service by this clock whose job has this many ranges of a record each; and what both ends of the job say."""
    service = TransformService(True, quiet, clock=clock)
    async with service.serving(socket):
        asked = [asyncio.create_task(service.transform([one_record(number)])) for number in range(records)]
        source, says = await asyncio.open_unix_connection(str(socket))
        says.write(encode({"role": "source", "attempt": 0}))
        sink, says_done = await asyncio.open_unix_connection(str(socket))
        says_done.write(encode({"role": "sink", "attempt": 0}))
        assert (await read_message(source))[0]["ranges"]
        assert (await read_message(sink))[0]["ranges"]
        try:
            yield service, asked, says, says_done
        finally:
            for each in asked:
                each.cancel()
            says.close()
            says_done.close()


async def test_a_job_without_progress_fails_with_the_range_that_is_in_work(tmp_path: Path) -> None:
    clock = Clock()
    async with in_work(tmp_path / "transform-0", clock, 3) as (service, (first, *others), _, says_done):
        later = asyncio.create_task(service.transform([one_record(3)]))
        clock.now = 59.0
        says_done.write(NOTHING_FAILED + encode({}))
        await first
        for clock.now in range(60, 119, 5):
            service.progress.require((), ())
        clock.now = 119.0
        for waiting in others:
            with pytest.raises(ProcessFailed, match=r"60 s in orders-1 offsets 0 to 0, orders-2 offsets 0 to 0$"):
                await waiting
        assert not later.done()
        later.cancel()


async def test_case_1042_a_job_that_reads_on_makes_progress_though_it_returns_nothing(tmp_path: Path) -> None:
    # A WHERE that keeps few rows, over a slow function, was taken for a record without end again and again.
    clock = Clock()
    async with in_work(tmp_path / "transform-0", clock, 1) as (service, (waiting,), says, _):
        clock.now = 5.0
        says.write(encode({}))
        async with asyncio.timeout(PATIENCE):
            while service.progress.newest != clock.now:
                await asyncio.sleep(0)
        service.progress.end()
        says.write(encode({}) + encode({"damaged": 0, "offset": 0, "reason": "late"}))
        async with asyncio.timeout(PATIENCE):
            (outcome,) = await waiting
        assert (outcome.stop, service.progress.newest) == (Failure(0, "late", damaged=True), None)


def has_failed(progress: JobProgress) -> bool:
    """True if the progress is none of a job that goes on."""
    with contextlib.suppress(ProcessFailed):
        progress.require((), ())
        return False
    return True


def test_case_1042_a_job_that_goes_on_has_a_minute_from_its_newest_progress() -> None:
    clock = Clock()
    progress = JobProgress(clock, 0.0)
    for clock.now in range(0, 300, 5):
        progress.note()
        assert not has_failed(progress)
    for clock.now in range(300, 360, 5):
        assert has_failed(progress) is (clock.now == 355)
    progress.end()
    progress.note()
    assert not has_failed(progress)


def test_case_1043_a_process_that_has_stood_still_does_not_take_its_job_for_one_that_hangs() -> None:
    clock = Clock()
    progress = JobProgress(clock, 0.0)
    for clock.now in (0.0, 1.0, 2.0, *range(1000, 1060, 5)):
        assert not has_failed(progress)
    clock.now = 1060.0
    assert has_failed(progress)


class Lane:
    """A connection to a lane's process that gives one range, with what the source says."""

    def __init__(self, given: Range) -> None:
        self.given, self.said = given, list[bytes]()

    def __enter__(self) -> "Lane":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def send(self, data: bytes) -> None:
        self.said.append(data)

    def read(self) -> tuple[Fields, memoryview]:
        message = memoryview(encode_ranges([self.given]))
        head, _ = LEAD.unpack(message[: LEAD.size])
        return decode(bytes(message[LEAD.size : LEAD.size + head])), message[LEAD.size + head :]


def test_case_1042_the_source_tells_of_each_batch_of_rows_that_spark_has_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ends, "_leave_garbage", lambda: None)
    many = outgoing_of([record(at, b"a") for at in range(3 * ROWS_AT_ONCE)], 3 * ROWS_AT_ONCE)
    lane = Lane(Range(Partition("orders", 0), 0, 3 * ROWS_AT_ONCE, many, 10**6))
    for count, _ in enumerate(ends.source(lambda: cast("Connection", lane), 0, ["offset"], Secret("salt"))):
        assert lane.said[1:] == [encode({})] * count
    assert count >= 3
    assert len(lane.said) == 2 + count
