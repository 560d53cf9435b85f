"""A source whose new leader does not know yet that all of its log is committed."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from appliance.errors import ApplianceError, BrokerBusy
from appliance.kafka.client.fetch import FetchedPartition
from appliance.link.model.replicas import Replica
from appliance.logs import reader as verify_reader
from appliance.logs.model.span import Span
from appliance.logs.reader import LogReader
from appliance.logs.side import Side
from appliance.verify.compacted import verify_newest_records
from appliance.verify.partition import verify_every_record
from appliance.verify.work import Job
from tests.support.logs import log, rows

SOURCE, COPY = uuid.UUID(int=1), uuid.UUID(int=2)


def a_cluster(side: str) -> Any:
    class Cluster:
        settings = SimpleNamespace(side=side)

        async def metadata(self, _: Any) -> Any:
            return SimpleNamespace(topics={})

    return Cluster()


def logs_of(monkeypatch: pytest.MonkeyPatch, source_end: int, copy_records: int) -> None:
    """A source of 60 records whose new leader knows them to be committed up to some offset, and a copy of some."""
    held = {"source": log(rows(60)), "destination": log(rows(copy_records))}

    async def fetch(cluster: Any, _: Any, partition: Any, position: int, *__: Any) -> FetchedPartition:
        side = cluster.settings.side
        end = source_end if side == "source" else copy_records
        batches = [b for b in held[side] if b.header.last_offset >= position and b.header.last_offset < end]
        data = b"".join(bytes(each.data) for each in batches)
        return FetchedPartition(partition, ErrorCode.none, memoryview(data), (), end, None)

    async def patiently(attempt: Callable[[], Awaitable[Any]], *_: Any) -> Any:
        for _again in range(3):
            try:
                return await attempt()
            except BrokerBusy:
                await asyncio.sleep(0)
        return await attempt()

    monkeypatch.setattr(verify_reader, "fetch_partition", fetch)
    monkeypatch.setattr(verify_reader, "retry_while_busy", patiently)


@pytest.mark.parametrize("compacted", [False, True])
async def test_case_930_a_source_whose_new_leader_lags_for_a_moment_is_not_equal_to_a_copy_that_lacks_its_end(
    monkeypatch: pytest.MonkeyPatch, compacted: bool
) -> None:
    # Its high watermark is behind for a moment after the election: a Fetch brings nothing at 50, of 60 that were there.
    logs_of(monkeypatch, 50, 50)
    job = Job(Replica("orders", 0, "orders.copy", SOURCE, COPY), Span(0, 60), Span(0, 50), compacted)
    ours = LogReader(a_cluster("source"), job.replica.source, "test", 0)
    theirs = LogReader(a_cluster("destination"), job.replica.copy, "test", 0)
    now = time.monotonic()
    try:
        if compacted:
            result = await verify_newest_records(job, ours, theirs, now, lambda _: None)
        else:
            sides = Side(ours, job.source), Side(theirs, job.destination, now)
            result = await verify_every_record(job, *sides, lambda _: None)
    except ApplianceError:
        return
    assert not result.state.well, result
