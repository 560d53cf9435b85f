"""The progress of a link, in Structured Streaming's shape."""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.position import Position
from appliance.status.model import progress as model
from appliance.status.model.facts import Log
from appliance.status.model.progress import Json, progress
from appliance.status.model.snapshot import Snapshot
from appliance.status.progress_reports import ProgressReports
from tests.support.facts import (
    COPIED_TO_THE_END,
    COPY_ID,
    DESTINATION,
    NOW,
    RUN,
    SILENT,
    SOURCE_ID,
    snapshot,
    with_logs,
)

KEY = ("payments", 0)
GROWN: dict[Partition, Log] = {KEY: Log(-1, 160, 160)}


def moved(run: str = RUN.run, seconds: float = 10) -> Snapshot:
    """The snapshot some seconds later, when 30 of 60 new records of one partition are copied."""
    position = Position(SOURCE_ID, COPY_ID, 130, 0, 120, 12_000, NOW)
    owner = replace(RUN, run=run, generation=2 if run != RUN.run else 1)
    destination = replace(DESTINATION, positions={**COPIED_TO_THE_END, KEY: position}, owners=(owner,) * 3)
    return snapshot(with_logs(GROWN), destination, now=NOW + int(seconds * 1000))


def test_rows_and_offsets_are_those_of_the_interval() -> None:
    made = json.loads(json.dumps(progress(snapshot(), moved(), 7)))
    assert (made["batchId"], made["batchDuration"], made["timestamp"]) == (7, 10_000, "2027-01-15T08:00:00.000Z")
    assert (made["numInputRows"], made["inputRowsPerSecond"], made["processedRowsPerSecond"]) == (30, 6.0, 3.0)
    (source,) = made["sources"]
    assert source["startOffset"] == {"payments": {"0": 100, "1": 100}}
    assert source["endOffset"] == {"payments": {"0": 130, "1": 100}}
    assert source["latestOffset"] == {"payments": {"0": 160, "1": 100}}
    assert source["metrics"]["maxOffsetsBehindLatest"] == "30"
    assert made["sink"] == {"description": "Kafka[grape]", "numOutputRows": 30}


def test_pyspark_reads_the_progress_as_its_own() -> None:
    made = progress(snapshot(), moved(), 0)
    read = StreamingQueryProgress.fromJson(json.loads(json.dumps(made)))
    assert str(read.id) == made["id"]
    assert (read.name, read.numInputRows, read.batchId) == ("replicator-orange", 30, 0)
    assert json.loads(read.sources[0].endOffset) == {"payments": {"0": 130, "1": 100}}
    assert read.sink.numOutputRows == 30


def test_the_id_is_the_links_and_the_run_id_is_the_runs() -> None:
    first, second = progress(snapshot(), moved(), 0), progress(snapshot(), moved("another"), 0)
    assert first["id"] == second["id"]
    assert first["runId"] != second["runId"]


def test_of_many_partitions_only_topics_that_have_moved_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "PARTITIONS_SHOWN", 1)
    assert progress(snapshot(), snapshot(now=NOW + 10_000), 0)["sources"] == []
    assert len(progress(snapshot(), moved(), 0)["sources"]) == 1  # type: ignore[arg-type]


class Told:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Json]] = []

    def started(self, event: Json) -> None:
        self.events.append(("started", event))

    def progressed(self, event: Json) -> None:
        self.events.append(("progressed", event))

    def idle(self, event: Json) -> None:
        self.events.append(("idle", event))


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Keep the log lines of the progress."""
    with caplog.at_level(logging.INFO, "appliance.status"):
        yield


def test_an_interval_is_logged_as_one_line_of_json_and_told_if_something_moved(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = Told()
    reports = ProgressReports(10, told)
    for each in (snapshot(), moved(seconds=5), moved(), moved(seconds=20)):
        reports.seen(each)
    assert [kind for kind, _ in told.events] == ["started", "progressed", "idle"]
    (line,) = caplog.messages
    made = json.loads(line.removeprefix("progress "))
    assert told.events[1][1] == {"progress": made}
    assert made["numInputRows"] == 30
    assert reports.last
    assert reports.last["numInputRows"] == 0


def test_an_unknown_snapshot_ends_no_interval_and_the_next_progress_covers_its_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reports = ProgressReports(10)
    for each in (snapshot(), snapshot(SILENT, now=NOW + 10_000), moved(seconds=20)):
        reports.seen(each)
    (line,) = caplog.messages
    assert json.loads(line.removeprefix("progress "))["batchDuration"] == 20_000


def test_another_run_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    reports = ProgressReports(10, told)
    for each in (snapshot(), moved("another")):
        reports.seen(each)
    assert [kind for kind, _ in told.events] == ["started", "started"]
    assert caplog.messages == []
