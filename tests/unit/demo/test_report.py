"""The report: its condition for a clean result, its table, and its JSON."""

import dataclasses
import io
import json

import pytest
from rich.console import Console

from demo.report import DemoReport
from testbed.comparison import Difference, Differences, Kind

CLEAN = DemoReport(20_000, 8_779_058, 1, 50_142.4, 23.04, 94.26, 49.87, Differences())
EXAMPLE = Difference(Kind.LOST, "orders.bulk", 3, 17, None)


def spoiled(unasked: tuple[str, ...] = (), **differences: object) -> DemoReport:
    return dataclasses.replace(CLEAN, differences=Differences(**differences), unasked=unasked)


def test_the_json_object_has_the_promised_keys():
    assert json.loads(CLEAN.as_json()) == {
        "records": 20_000,
        "bytes": 8_779_058,
        "lost": 0,
        "duplicated": 0,
        "reordered": 0,
        "altered": 0,
        "restarts": 1,
        "records_per_second": 50_142,
        "latency_p50_ms": 23.0,
        "latency_p99_ms": 94.3,
        "seconds": 49.9,
    }
    assert "\n" not in CLEAN.as_json()


def test_no_difference_is_clean_and_gives_no_complaint():
    assert CLEAN.clean
    assert CLEAN.complaints() == []


@pytest.mark.parametrize(
    ("report", "complaint"),
    [
        (spoiled(lost=1, examples=(EXAMPLE,)), str(EXAMPLE)),
        (spoiled(unasked=("payments.copy",)), "topic payments.copy is not one of the link's"),
    ],
)
def test_every_difference_is_named_and_makes_the_report_unclean(report, complaint):
    assert not report.clean
    assert report.complaints() == [complaint]


def test_the_table_fits_a_narrow_terminal_and_shows_every_count():
    written = io.StringIO()
    console = Console(file=written, width=80)
    console.print(spoiled(lost=11, duplicated=22, reordered=33, altered=44).as_table())
    lines = written.getvalue().splitlines()
    rows = {cells[1].strip(): cells[2].strip() for line in lines if len(cells := line.split("│")) == 4}
    assert rows["records"] == "20,000"
    assert [rows[kind] for kind in Kind] == ["11", "22", "33", "44"]
    assert rows["latency p50 / p99"] == "23 / 94 ms"
    assert "the copies differ from their source" in lines[0]
