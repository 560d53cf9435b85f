"""The printed form of a diagnosis."""

import json

from rich.console import Console

from appliance.doctor.diagnosis import Diagnosis
from appliance.doctor.step import Finding, Result, Verdict, failed, passed, skipped, warning
from appliance.settings.values import Side

RESULTS = (
    Result("settings", passed("link orange-grape by tls"), 0.1234),
    Result("clock", warning("12:00", "keep it by NTP"), 0.0),
    Result("tunnel port", failed("refused\x1b[2J", "start it"), 5.0),
    Result("mutual TLS", Finding(Verdict.NOT_REACHED, "behind: tunnel port")),
)
REPORT = Diagnosis(Side.DESTINATION, "2026-11-21T10:20:30Z", RESULTS)


def printed(report: Diagnosis) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(report.as_table())
        for remark in report.remarks():
            console.print(remark)
    return capture.get()


def test_the_table_has_times_and_below_it_what_to_change_and_where_it_breaks() -> None:
    shown = printed(REPORT)
    assert [row.split("│")[3].strip() for row in shown.splitlines() if "│" in row] == ["0.12", "0.00", "5.00", ""]
    assert "tunnel port: start it" in shown
    assert "clock: keep it by NTP" in shown
    assert shown.rstrip().endswith("the path fails at: tunnel port")


def test_a_strangers_text_cannot_move_the_cursor() -> None:
    assert "refused\\x1b[2J" in printed(REPORT)


def test_the_path_is_whole_with_warnings_and_without_what_is_not_needed() -> None:
    well = Diagnosis(Side.SOURCE, REPORT.began, (*RESULTS[:2], Result("source: SASL", skipped("no key"))))
    assert (well.well, REPORT.well) == (True, False)
    assert "the path works" in printed(well)


def test_the_json_has_all_of_it() -> None:
    answer = json.loads(REPORT.as_json())
    assert (answer["side"], answer["began"], answer["well"]) == ("destination", REPORT.began, False)
    assert answer["steps"][2] == {
        "step": "tunnel port",
        "verdict": "failed",
        "seconds": 5.0,
        "detail": "refused\x1b[2J",
        "change": "start it",
    }
    assert answer["steps"][0]["change"] is None
