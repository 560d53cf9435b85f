"""A link's charts outlive the control center, in a private file of bounded size."""

import json
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.console.kept_history import KeptHistory
from appliance.console.model.charts import chart
from appliance.console.model.events import EVENTS_MAX, Event
from appliance.console.model.history import History
from appliance.console.model.history_bytes import BYTES_MAX, NotReadable, from_bytes, to_bytes
from appliance.console.watch import LinkWatch
from tests.support.console import of_size, watch_of
from tests.support.facts import NOW

LINK = "orange-grape"
TAKEN = of_size({"orders": 3}, now=NOW)


def opened_and_closed(folder: Path | None, *taken: object) -> LinkWatch:
    """The watch of a control center that ran with this folder."""
    watch = watch_of()
    with KeptHistory(folder, LINK, watch).opened():
        for each in taken:
            watch.add(each)  # type: ignore[arg-type]
    return watch


def drawn(watch: LinkWatch, tier: str = "hour") -> object:
    return chart(watch.history, watch.events, "replicator-orange", tier, "orders")


@pytest.mark.parametrize("tier", ["hour", "day"])
def test_charts_marks_and_events_go_on_after_a_restart(tier: str, tmp_path: Path) -> None:
    before = opened_and_closed(tmp_path / "new" / "folder", TAKEN)
    after = opened_and_closed(tmp_path / "new" / "folder")
    assert drawn(after, tier) == drawn(before, tier)
    assert after.events == before.events != []
    assert [each.mark for each in after.events] == [each.mark for each in before.events]
    both = opened_and_closed(tmp_path / "new" / "folder", of_size({"orders": 3}, now=NOW + 600_000))
    assert len(chart(both.history, (), "", "day")["at"]) == 2


def test_only_its_user_reads_the_file_and_its_folder(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        opened_and_closed(tmp_path / "history", TAKEN)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "history").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "history" / f"{LINK}.history").stat().st_mode) == 0o600


def test_without_a_folder_nothing_is_kept_and_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert opened_and_closed(None, TAKEN).history_note == ""
    assert caplog.messages == []


def test_the_file_is_bounded_whatever_the_number_of_topics_and_events() -> None:
    history, noise = History(), random.Random(7)
    history.add(of_size({f"{number:0249}": 60 for number in range(200)}))
    for ring in history.arrays[1:]:
        if ring.typecode == "d":
            ring[:] = type(ring)("d", [noise.random() for _ in ring])
    events = [Event(NOW, "x" * 249, f"{number}: {noise.randbytes(2000).hex()}") for number in range(EVENTS_MAX)]
    content = to_bytes(LINK, history, events)
    assert len(content) < BYTES_MAX
    read, kept = from_bytes(LINK, content)
    assert read.arrays == history.arrays
    assert 0 < len(kept) < EVENTS_MAX
    assert kept == events[: len(kept)], "the newest"


def whole() -> bytes:
    history = History()
    history.add(TAKEN)
    return to_bytes(LINK, history, [Event(NOW, "orders", "found")])


def _body(**changed: object) -> bytes:
    first, _, body = whole().partition(b"\n")
    head, _, numbers = zlib.decompress(body).partition(b"\n")
    document = {name: value for name, value in (json.loads(head) | changed).items() if value is not None}
    return first + b"\n" + zlib.compress(json.dumps(document).encode() + b"\n" + numbers)


DAMAGED = {
    "nothing": b"",
    "cut off": whole()[:-7],
    "a bit": whole()[:-1] + bytes([whole()[-1] ^ 1]),
    "another's": b"GIF89a\n" + bytes(99),
    "a newer one": b"kafka-cloud-replicator history 2 little-endian\nzlib no more",
    "another link's": _body(link="lemon-grape"),
    "no link's": _body(link=None),
    "no list": _body(subjects=7),
    "too few": _body(subjects=[]),
    "too many": _body(subjects=[["x", number] for number in range(9999)]),
    "an event of another form": _body(events=[["x"]]),
    "a deep head": whole().partition(b"\n")[0] + b"\n" + zlib.compress(b"[" * 100_000),
    "a bomb": whole().partition(b"\n")[0] + b"\n" + zlib.compress(bytes(50_000_000)),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_or_newer_file_is_set_aside_said_and_the_charts_begin_anew(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(NotReadable):
        from_bytes(LINK, content)
    file = tmp_path / f"{LINK}.history"
    file.write_bytes(content)
    watch = opened_and_closed(tmp_path, TAKEN)
    assert (tmp_path / f"{LINK}.set-aside").read_bytes() == content
    assert f"{LINK}.history cannot be read and was set aside as" in watch.history_note
    assert caplog.messages == [watch.history_note]
    assert drawn(opened_and_closed(tmp_path)) == drawn(watch), "the next one is whole"


@contextmanager
def full_disk() -> Iterator[None]:
    """Files may be no longer than some bytes, as on a disk that becomes full in the middle of one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def test_on_a_full_disk_the_file_of_before_stays_and_the_log_has_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = opened_and_closed(tmp_path, TAKEN)
    watch = watch_of()
    kept = KeptHistory(tmp_path, LINK, watch)
    with kept.opened():
        watch.add(replace(TAKEN, at=NOW + 60_000))
        with full_disk():
            for _ in range(3):
                kept._write()
        assert [each.name for each in tmp_path.iterdir()] == [f"{LINK}.history"]
        read, _ = from_bytes(LINK, (tmp_path / f"{LINK}.history").read_bytes())
        assert read.arrays == before.history.arrays
        assert watch.history_note.startswith("The charts are not kept: ")
        kept._write()
        assert watch.history_note == ""
    (line,) = caplog.messages
    assert line.startswith("The charts are not kept: ")


def test_a_folder_that_cannot_be_made_is_one_line_and_the_page_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    watch = opened_and_closed(tmp_path / "file" / "folder", TAKEN)
    assert caplog.messages == [watch.history_note]
    assert "The charts end with this control center" in watch.history_note
    assert watch.history.newest is not None


_WRITES = """
import sys
from pathlib import Path
from appliance.console.kept_history import KeptHistory
from tests.support.console import of_size, watch_of
watch = watch_of(of_size({"orders": 300}))
kept = KeptHistory(Path(sys.argv[1]), "orange-grape", watch)
with kept.opened():
    while True:
        kept._write()
        print(flush=True)
"""


def test_killed_at_any_moment_the_file_is_whole(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", _WRITES, tmp_path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(random.Random().randint(1, 9)):
        process.stdout.readline()
    process.kill()
    process.wait()
    process.stdout.close()
    (tmp_path / f"{LINK}.new").write_bytes(b"a part")  # as a kill in the middle leaves it
    watch = opened_and_closed(tmp_path, of_size({"orders": 300}, now=NOW + 10_000))
    assert watch.history_note == ""
    assert [each.name for each in tmp_path.iterdir()] == [f"{LINK}.history"]
    assert len(chart(watch.history, (), "", "hour")["at"]) == 2
