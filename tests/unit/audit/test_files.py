"""The audit table's files: which of them hold, which are merged, and which are removed."""

import io
import os
from datetime import date, timedelta
from pathlib import Path

import pytest
from pyarrow import parquet

from appliance.audit.log import AuditLog
from appliance.audit.model.files import (
    CLAIMS_KEPT,
    FILES_A_MERGE,
    MERGED_BYTES_MAX,
    Claim,
    DataFile,
    decode_claim,
    encode_claim,
    listing,
)
from appliance.audit.model.rows import AuditRow, Kind
from appliance.audit.model.state import AuditState
from appliance.audit.model.table import SCHEMA, encode_rows
from appliance.audit.store import Folder
from appliance.errors import PeerError, StorageFailed

DAY = date(2026, 11, 25)
BEFORE = DAY - timedelta(days=1)


def names(*files: DataFile) -> dict[str, int]:
    return {each.name: each.size for each in files}


def singles(first: int, last: int, day: date = DAY, size: int = 1000) -> list[DataFile]:
    return [DataFile(day, number, number, size) for number in range(first, last + 1)]


def test_a_merged_file_replaces_its_parts_and_no_file_of_another_day() -> None:
    merged = DataFile(DAY, 1, 5, 5000)
    other = DataFile(BEFORE, 3, 3, 1000)
    found = listing(names(*singles(1, 2), *singles(4, 6), merged, other))
    assert found.holding == [merged, other, DataFile(DAY, 6, 6, 1000)]
    assert found.replaced == [*singles(1, 2), *singles(4, 5)]


def test_small_files_of_a_day_are_merged_when_there_are_many_and_the_newest_stays() -> None:
    few = listing(names(*singles(1, FILES_A_MERGE)))
    assert few.to_merge(DAY) == []
    many = listing(names(*singles(1, FILES_A_MERGE + 1)))
    assert many.to_merge(DAY) == singles(1, FILES_A_MERGE)


def test_what_is_left_of_a_day_that_has_ended_is_merged() -> None:
    found = listing(names(*singles(1, 3), *singles(4, 5, DAY + timedelta(days=1))))
    assert found.to_merge(DAY + timedelta(days=1)) == singles(1, 3)


def test_no_file_that_is_large_lies_within_a_merged_one() -> None:
    large = DataFile(BEFORE, 3, 3, MERGED_BYTES_MAX)
    found = listing(names(*singles(1, 2, BEFORE), large, *singles(4, 6, BEFORE), *singles(7, 7)))
    assert found.to_merge(DAY) == singles(1, 2, BEFORE)
    merged = DataFile(BEFORE, 1, 2, 2000)
    then = listing(names(merged, large, *singles(4, 6, BEFORE), *singles(7, 7)))
    assert then.to_merge(DAY) == singles(4, 6, BEFORE)


def test_days_are_removed_after_the_retention_except_the_newest_write_which_holds_the_state() -> None:
    found = listing(names(*singles(1, 2, DAY - timedelta(days=10)), *singles(3, 3, BEFORE)))
    assert found.expired(DAY, 7) == singles(1, 2, DAY - timedelta(days=10))
    assert found.expired(DAY, 0) == []
    idle = listing(names(*singles(1, 2, DAY - timedelta(days=10))))
    assert idle.expired(DAY, 7) == singles(1, 1, DAY - timedelta(days=10))


def test_the_newest_claims_are_kept() -> None:
    found = listing(dict.fromkeys((f"_writes/{number:020}" for number in range(1, CLAIMS_KEPT + 3)), 1))
    assert list(found.old_claims()) == [1, 2]
    assert list(listing({"_writes/note.txt": 1, "_writes/00000000000000000001": 1}).old_claims()) == []


def test_a_claim_is_read_as_it_was_written_and_a_newer_releases_is_refused() -> None:
    claim = Claim(17, DataFile(DAY, 17, 17).name, "ab", {0: 12, 3: 9})
    assert decode_claim(17, encode_claim(claim)) == claim
    with pytest.raises(PeerError, match="newer release"):
        decode_claim(17, encode_claim(claim).replace(b'"version": 1', b'"version": 2'))
    with pytest.raises(PeerError, match="claim 17 is damaged"):
        decode_claim(17, b"")


def test_case_836_files_of_a_day_are_merged_after_a_column_was_added(tmp_path: Path) -> None:
    # Before, the merge failed every time, so that the folder grew by a file a minute from the upgrade on.
    counts = 1, 1, None, 0, 0, 0
    row = AuditRow(Kind.COPIED, "run", 0, "orders", 0, "orders.copy", 0, 1, 0, 1, *counts, 1, 5, 1, 1, None, 7)
    table = parquet.read_table(io.BytesIO(encode_rows([row], AuditState())))
    older = io.BytesIO()
    parquet.write_table(table.drop_columns(["dead_letters"]), older)
    store = Folder(tmp_path)
    for each in singles(1, 3):
        store.replace(each.name, older.getvalue() if each.first < 2 else encode_rows([row], AuditState()))
    AuditLog(store).tidy(DAY + timedelta(days=1), 7)
    merged, last = listing(store.sizes()).holding
    assert (merged.first, merged.last, last.first) == (1, 2, 3)
    whole = parquet.read_table(io.BytesIO(store.read(merged.name)))
    assert sorted(whole.column_names) == sorted(SCHEMA.names)
    assert whole["dead_letters"].to_pylist() == [None, 0]
    assert AuditLog(store).open().state == AuditState()


def test_a_file_is_made_once_and_replaced_whole(tmp_path: Path) -> None:
    store = Folder(tmp_path / "new" / "audit")
    assert store.sizes() == {}
    assert store.create("_writes/1", b"one")
    assert not store.create("_writes/1", b"another")
    store.replace("day=2026-11-25/1.parquet", b"rows")
    store.replace("day=2026-11-25/1.parquet", b"more rows")
    assert store.sizes() == {"_writes/1": 3, "day=2026-11-25/1.parquet": 9}
    assert store.read("_writes/1") == b"one"
    store.remove("day=2026-11-25/1.parquet")
    store.remove("day=2026-11-25/1.parquet")
    assert store.sizes() == {"_writes/1": 3}


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file")
    store = Folder(tmp_path / "audit")
    for work in (lambda: store.create("_writes/1", b""), lambda: store.replace("a", b""), lambda: store.read("a")):
        with pytest.raises(StorageFailed, match=f"^AUDIT_PATH={tmp_path}/audit: cannot .*: (Not a|File ex)"):
            work()


def test_case_486_what_a_killed_writer_has_left_is_in_nobodys_way_and_removed_after_a_day(tmp_path: Path) -> None:
    # Before, it stayed for ever, and the next process with the same id, as all have in a container, met its name.
    new, old = tmp_path / ".writing-1-0", tmp_path / ".writing-1-1"
    for left in (new, old):
        left.write_bytes(b"half a fi")
    os.utime(old, (1, 1))
    folder = Folder(tmp_path)
    for number in range(3):
        folder.replace(f"{number}.parquet", b"whole")
        assert not folder.create(f"{number}.parquet", b"another")
    assert {each.name for each in tmp_path.iterdir()} == {new.name, "0.parquet", "1.parquet", "2.parquet"}
    assert folder.sizes() == {"0.parquet": 5, "1.parquet": 5, "2.parquet": 5}
