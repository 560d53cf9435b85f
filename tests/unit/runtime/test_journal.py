"""Records for systemd's journal, read from a real socket of datagrams."""

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.runtime.journal import datagram, journal_of

LOGGING = """
import logging, os, sys
from appliance.runtime import journal, log
from appliance.settings.values import LogFormat, LogSettings
journal.journal_of.__defaults__ = (sys.argv[1],)
status = os.fstat(2)
os.environ["JOURNAL_STREAM"] = sys.argv[2].format(f"{status.st_dev}:{status.st_ino}")
log.configure(LogSettings(LogFormat(sys.argv[3]), "info"))
logging.getLogger("appliance.replicator").warning(
    "a partition\\nstops", extra={"fields": {"link": "replicator-orange", "partition": "orders-3", "lag.records": 7}}
)
"""


def parsed(data: bytes) -> dict[str, str]:
    """The fields, as the journal's documentation says how to read them."""
    found: dict[str, str] = {}
    while data:
        line, _, rest = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            (length,) = struct.unpack("<Q", rest[:8])
            value, rest = rest[8 : 8 + length], rest[9 + length :]
        found[name.decode()] = value.decode()
        data = rest
    return found


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.setblocking(False)
        yield listening


def logged(journal: socket.socket, stream: str = "{}", form: str = "text") -> tuple[str, dict[str, str]]:
    """What a process has written to stderr, and sent to the journal."""
    line = [sys.executable, "-c", LOGGING, journal.getsockname(), stream, form]
    done = subprocess.run(
        line, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONWARNINGS": "error"}
    )
    try:
        return done.stderr, parsed(journal.recv(2**18))
    except BlockingIOError:
        return done.stderr, {}


def test_where_stderr_is_the_journal_it_gets_priority_text_and_fields(journal: socket.socket) -> None:
    assert logged(journal) == (
        "",
        {
            "LINK": "replicator-orange",
            "PARTITION": "orders-3",
            "LAG_RECORDS": "7",
            "MESSAGE": "replicator: a partition\\nstops link=replicator-orange partition=orders-3 lag.records=7",
            "PRIORITY": "4",
            "EVENT": "a partition\nstops",
            "LOGGER": "appliance.replicator",
        },
    )


def test_another_stderr_or_json_that_was_asked_for_is_left_to_stderr(journal: socket.socket) -> None:
    text, sent = logged(journal, stream="1:2")
    assert (" WARN  replicator: a partition\\nstops link=" in text, sent) == (True, {})
    text, sent = logged(journal, form="json")
    assert (json.loads(text)["fields"]["partition"], sent) == ("orders-3", {})


def test_without_the_journals_socket_the_lines_go_to_stderr(journal: socket.socket) -> None:
    Path(journal.getsockname()).unlink()
    text, _ = logged(journal)
    assert "replicator: a partition" in text


def test_without_a_stderr_there_is_no_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert journal_of({}) is None


def test_the_longest_record_with_a_text_of_many_bytes_is_sent(journal: socket.socket) -> None:
    own = {"MESSAGE": "\N{GRINNING FACE}" * 100_000, "EVENT": "\N{GRINNING FACE}" * 100_000}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.sendto(datagram(own), journal.getsockname())
    assert {name: len(text.encode()) for name, text in parsed(journal.recv(2**18)).items()} == dict.fromkeys(own, 2**15)


def test_no_field_of_a_record_takes_a_name_of_the_journals_own_or_begins_a_line() -> None:
    fields = {"_PID": 1, "a b": "x\nMESSAGE=y", "n": "z" * 100_000}
    assert parsed(datagram(fields)) == {"PID": "1", "A_B": "x\nMESSAGE=y", "N": "z" * 32 * 1024}
