"""The audit table's folder on this host."""

import os
from pathlib import Path

from appliance.audit.store import Folder


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
