import json

from rich.console import Console

from appliance.logs.model.span import CopyState, Span
from appliance.verify.model.report import NEWEST_RECORDS, PartitionResult, VerificationReport

EQUAL = PartitionResult(
    "orders",
    "orders.copy",
    0,
    CopyState.EQUAL,
    "",
    records=1234,
    source=Span(5, 1239),
    destination=Span(0, 1240),
    digest="ab" * 32,
)
DIFFERS = PartitionResult("orders", "orders.copy", 1, CopyState.DIFFERS, "[what] it looks like", differs_at=17)


def report(*verdicts: PartitionResult) -> VerificationReport:
    return VerificationReport("orange", "grape", "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z", verdicts)


def test_only_equal_partitions_are_well() -> None:
    assert report(EQUAL).well
    for state in set(CopyState) - {CopyState.EQUAL, CopyState.EQUAL_IN_PART}:
        assert not report(EQUAL, PartitionResult("t", "t.copy", 0, state)).well


def test_the_json_holds_every_field_of_every_verdict() -> None:
    told = json.loads(report(EQUAL, DIFFERS).as_json())
    assert (told["source"], told["destination"], told["equal"], told["records"]) == ("orange", "grape", False, 1234)
    first, second = told["partitions"]
    assert (first["state"], first["source"], first["digest"]) == ("equal", {"start": 5, "end": 1239}, "ab" * 32)
    assert (second["state"], second["differs_at"], second["source"]) == ("differs", 17, None)


def test_the_table_has_a_row_for_each_and_the_remarks_say_the_rest() -> None:
    compacted = PartitionResult("users", "users.copy", 0, CopyState.BEHIND, "", NEWEST_RECORDS, 3, behind=2)
    shown = report(EQUAL, DIFFERS, compacted)
    console = Console(width=200)
    with console.capture() as captured:
        console.print(shown.as_table())
    text = captured.get()
    for part in ("1,234", "5 to 1,239", "abababababababab ", "differs at source offset 17", "behind by 2 keys"):
        assert part in text
    assert list(shown.remarks()) == [
        "3 results: 1 equal, 1 differs, 1 behind; 1,237 records compared",
        "orders-1: [what] it looks like",
        "users: it is compacted, so only the newest record of each key was compared",
    ]
