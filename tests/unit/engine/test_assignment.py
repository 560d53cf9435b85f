import uuid

import pytest

from appliance.engine.control import assignment
from appliance.engine.control.assignment import (
    STOP,
    Assignment,
    CopySums,
    Hello,
    Notice,
    Question,
    decode_answer,
    encode_answer,
)
from appliance.engine.control.connection import REPORT_MAX
from appliance.engine.model.chunk import Ledger
from appliance.errors import ApplianceError, BrokerRefused, PartitionStopped, PeerError, ProcessFailed, Unreachable
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import StartOffsets
from appliance.link.model.link_sql import LinkSql
from appliance.link.model.position import NO_PLACE, SourcePlace
from appliance.link.model.replicas import Replica
from appliance.link.model.stops import FOLLOWING
from appliance.settings.target import Target

STARTS = {"orders": StartOffsets("orders", uuid.UUID(int=1), (SourcePlace(100, 3), NO_PLACE))}
ASSIGNMENT = Assignment(
    {5: (Replica("orders", 1, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2)),)},
    STARTS,
    bytes_per_second=500,
    sql=LinkSql(3, "SELECT * FROM records", "5a17"),
)


def test_a_written_assignment_is_read_back() -> None:
    hello, notice, copied = Hello(3, 17), Notice("lane 3", "no", "Fenced"), CopySums(10, 900, 1, 2, 1)
    assert assignment.decode_hello(assignment.encode_message(hello)) == hello
    assert assignment.decode_assignment(assignment.encode_assignment(ASSIGNMENT)) == ASSIGNMENT
    assert assignment.decode_assignment(STOP) is None
    for report in (notice, copied, Target("10.0.0.2", 4000)):
        assert assignment.decode_report(assignment.encode_message(report)) == report


def test_a_question_and_its_answer_are_read_back() -> None:
    question = Question(3, 40)
    assert assignment.decode_hello(assignment.encode_message(question)) == question
    for at in (Target("10.0.0.2", 4000), None):
        assert decode_answer(encode_answer(at)) == at


def test_every_line_is_one_line() -> None:
    line = assignment.encode_message(Notice("a\nb", "c\r\nd", "e"))
    assert line.count(b"\n") == 1


@pytest.mark.parametrize("text", ["x" * 1_200_000, "\U0001f600" * 400_000])
@pytest.mark.parametrize("kind", [ApplianceError, Unreachable, PeerError, ProcessFailed, PartitionStopped])
def test_case_1030_a_long_text_of_a_broker_fits_into_a_line_and_a_position(
    kind: type[ApplianceError], text: str
) -> None:
    # Its control connection was cut, and with it all lanes of the task; a position was larger than its topic takes.
    error = kind(f"orders-0 offset 5 is refused: {text}; {FOLLOWING} 6")
    line = assignment.encode_message(Notice("lane 3", str(error), kind.__name__))
    assert len(line) < REPORT_MAX
    refused = str(BrokerRefused(text, "POLICY_VIOLATION", text))
    assert len(refused) < 2_000


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"nonsense",
        b"\xff",
        b'{"lanes": 3, "starts": {}, "bytes_per_second": 0}',
        b'{"task": "x", "attempt": []}',
        b'{"subject": "x"}',
        b'{"records": 1}',
        b'{"stage": 1}',
        b'{"host": "10.0.0.2", "port": "x"}',
    ],
)
def test_nonsense_is_the_peers_fault(line: bytes) -> None:
    for decode in (assignment.decode_hello, assignment.decode_assignment, assignment.decode_report):
        with pytest.raises(PeerError):
            decode(line)


def test_copied_records_are_reported_in_sums() -> None:
    ledger = Ledger(20, 1800, 4, 2, {Partition("orders", 0), Partition("orders", 4)})
    assert CopySums.of(ledger) == CopySums(records=20, bytes=1800, partitions=2, raw_batches=4, rebuilt_batches=2)
