"""Partitions verified in parts: the same results as in one piece, however they are divided."""

import contextlib
import errno
import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from appliance.errors import ApplianceError, SettingsError
from appliance.kafka.records.batch import Batch
from appliance.link.model.claims import AdoptedPartition
from appliance.link.model.replicas import Replica
from appliance.logs.model import comparison
from appliance.logs.model.span import CopyState, Span
from appliance.logs.side import Side
from appliance.verify.model.report import PartitionResult
from appliance.verify.partition import verify_every_record
from appliance.verify.resume_file import ResumeFile
from appliance.verify.work import (
    BLOCK_OFFSETS,
    PARTS,
    Job,
    bundles,
    decode_job,
    decode_result,
    divided,
    divisions,
    encode_job,
    joined,
)
from tests.support.logs import MemoryReader, end, log, raw_copy, rows

REPLICA = Replica("orders", 0, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
EQUAL = PartitionResult("orders", "orders.copy", 0, CopyState.EQUAL, source=Span(0, 9), destination=Span(0, 9))
HEADER = {"link": "replicator-orange", "topics": [], "began": "then"}


def job_of(source: int, copy: int) -> Job:
    return Job(REPLICA, Span(0, source), Span(0, copy), compacted=False)


async def result_of(job: Job, source: list[Batch], copy: list[Batch]) -> PartitionResult:
    """The result of a job; the destination has no time to catch up."""
    theirs = MemoryReader(copy, job.destination.start, end(copy))
    return await verify_every_record(
        job,
        Side(MemoryReader(source, job.source.start, end(source)), job.source),
        Side(theirs, job.destination, deadline=0.0 if job.last else None),
        lambda _: None,
    )


async def in_parts(source: list[Batch], copy: list[Batch], batches: Sequence[int]) -> PartitionResult | None:
    """The joined result of parts that begin with these batches of both logs."""
    places = [(source[each].header.base_offset, copy[each].header.base_offset) for each in batches]
    parts = divided(job_of(end(source), end(copy)), places)
    return joined([await result_of(part, source, copy) for part in parts])


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.sets(st.integers(1, 9)).map(sorted))
async def test_any_division_gives_the_result_of_one_piece(monkeypatch: pytest.MonkeyPatch, batches: list[int]) -> None:
    monkeypatch.setattr(comparison, "BLOCK_OFFSETS", 10)
    source = log(rows(100), 10)
    copy = raw_copy(source)
    whole = await result_of(job_of(end(source), end(copy)), source, copy)
    assert await in_parts(source, copy, batches) == whole
    assert (whole.state, whole.records) == (CopyState.EQUAL, 100)


async def test_parts_may_begin_and_end_within_batches_of_the_destination(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "BLOCK_OFFSETS", 10)
    source, copy = log(rows(100), 10), log(rows(100), 7)
    whole = await result_of(job_of(100, 100), source, copy)
    parts = divided(job_of(100, 100), [(20, 20), (50, 50), (70, 70)])
    assert joined([await result_of(part, source, copy) for part in parts]) == whole
    assert (whole.state, whole.records) == (CopyState.EQUAL, 100)


async def test_a_copy_that_ends_in_the_last_part_is_behind_as_in_one_piece() -> None:
    source = log(rows(100), 10)
    copy = raw_copy(source)[:8]
    whole = await result_of(job_of(end(source), end(copy)), source, copy)
    found = await in_parts(source, copy, [5])
    assert found
    assert whole.digest
    assert replace(found, digest=None) == replace(whole, digest=None)
    assert found.words == "behind by 20 records"


@pytest.mark.parametrize("altered", [0, 4, 7])
async def test_a_difference_within_a_part_has_the_partition_verified_in_one_piece(altered: int) -> None:
    source = log(rows(100), 10)
    copy = raw_copy(log([*rows(100)[: altered * 10], *rows(100, 5_000)[altered * 10 :]], 10))
    assert await in_parts(source, copy, [8]) is None


def test_a_log_is_divided_at_blocks_and_into_a_bounded_number_of_parts() -> None:
    assert divisions(job_of(BLOCK_OFFSETS, 1)) == []
    assert divisions(job_of(3 * BLOCK_OFFSETS, 1)) == [BLOCK_OFFSETS, 2 * BLOCK_OFFSETS]
    assert divisions(replace(job_of(3 * BLOCK_OFFSETS, 1), compacted=True)) == []
    many = divisions(job_of(10_000 * BLOCK_OFFSETS, 1))
    assert PARTS // 2 < len(many) < PARTS
    assert not [offset for offset in many if offset % BLOCK_OFFSETS]


def test_short_partitions_share_a_task_and_long_ones_come_first() -> None:
    jobs = [replace(job_of(size, 1), replica=replace(REPLICA, partition=size)) for size in (5, BLOCK_OFFSETS, 7)]
    assert [[len(job.source) for job in bundle] for bundle in bundles(jobs)] == [[BLOCK_OFFSETS], [7, 5]]
    assert len(bundles([job_of(1, 1)] * 200)) == 4
    assert [len(bundles([job_of(100_000, 1)] * 20, has_sql=has_sql)) for has_sql in (False, True)] == [2, 20]


def test_jobs_and_results_come_through_json_as_they_were() -> None:
    for job in (job_of(7, 8), replace(job_of(7, 8), adopted=AdoptedPartition(0, 3, 4), last=False)):
        assert decode_job(json.loads(json.dumps(encode_job(job)))) == job
    for result in (EQUAL, replace(EQUAL, source=None, state=CopyState.DIFFERS, differs_at=4)):
        assert decode_result(json.loads(json.dumps(asdict(result)))) == result


def test_the_file_keeps_good_results_and_forgets_a_line_that_a_kill_has_cut(tmp_path: Path) -> None:
    path, (first, second) = tmp_path / "verify.json", divided(job_of(9, 9), [(4, 4)])
    file = ResumeFile(path, HEADER)
    file.divided([first, second])
    file.found(first, EQUAL)
    file.found(second, replace(EQUAL, state=CopyState.BEHIND))
    with path.open("a") as cut:
        cut.write('{"job": {"repl')
    again = ResumeFile(path, {**HEADER, "began": "now"})
    assert (again.began, again.parts(first)) == ("then", [first, second])
    assert (again.result(first), again.result(second)) == (EQUAL, None)
    again.found(second, EQUAL)
    assert ResumeFile(path, HEADER).result(second) == EQUAL
    again.end()
    assert not path.exists()


@pytest.mark.parametrize("text", ['{"verify": 2}\n', "no JSON\n", '{"verify": 1, "link": "another"}\n', "[]\n"])
def test_a_file_of_another_verification_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "verify.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match=rf"--resume {path}: .*name another file, or remove this one"):
        ResumeFile(path, HEADER)
    assert path.read_text() == text


@pytest.mark.parametrize("content", [b"my notes", b"my notes\nand more", b'{"verify": 2}\nmore', b"\xff\xfe\x00"])
def test_case_472_a_file_of_somebody_else_is_refused_in_a_line_and_keeps_its_last_line(
    tmp_path: Path, content: bytes
) -> None:
    # Before, a last line without an end was taken for one that a kill had cut, and removed from any file.
    path = tmp_path / "notes"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=rf"--resume {path}: .*name another file, or remove this one"):
        ResumeFile(path, HEADER)
    assert path.read_bytes() == content


@pytest.mark.parametrize("length", [0, 1, 5, 20])
def test_a_file_that_a_kill_has_cut_in_its_first_line_begins_anew(tmp_path: Path, length: int) -> None:
    path = tmp_path / "verify.json"
    ResumeFile(path, HEADER).found(job_of(9, 9), EQUAL)
    whole = path.read_text()
    path.write_text(whole[:length])
    ResumeFile(path, HEADER).found(job_of(9, 9), EQUAL)
    assert path.read_text() == whole


def test_case_484_a_file_that_cannot_be_removed_is_emptied_and_a_full_disk_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before, a verification ended with a traceback in the place of its results, at a file that is mounted by itself.
    def busy(*_: object, **__: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    path = tmp_path / "verify.json"
    file = ResumeFile(path, HEADER)
    file.found(job_of(9, 9), EQUAL)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", busy)
        file.end()
    assert path.read_text() == ""
    assert ResumeFile(path, HEADER).result(job_of(9, 9)) is None
    file = ResumeFile(path, HEADER)
    with contextlib.suppress(OSError), Path("/dev/full").open("w") as full:
        monkeypatch.setattr(file, "_file", full)
        with pytest.raises(ApplianceError, match=rf"^--resume {path}: No space left on device$"):
            file.found(job_of(9, 9), EQUAL)
