import logging

import pytest

from appliance.errors import IdentityRefused, PeerError, TimedOut, Unreachable
from appliance.tunnel.outage_log import LINES_A_MINUTE, OutageLog

LINES = ((IdentityRefused, "refused: check SHARED_SECRET"), (Unreachable, "unreachable: check TUNNEL_PORT"))


@pytest.fixture
def report(caplog):
    caplog.set_level(logging.INFO)
    return OutageLog("server", LINES, "reached again")


def test_a_state_is_logged_once_and_its_change_again(report, caplog):
    for error in [Unreachable("a"), Unreachable("b"), TimedOut("c"), IdentityRefused("d"), Unreachable("e")]:
        report.failed("s", error)
    assert caplog.messages == ["unreachable: check TUNNEL_PORT", "refused: check SHARED_SECRET", LINES[1][1]]
    assert caplog.records[0].fields == {"server": "s", "cause": "a"}


def test_a_recovery_is_logged_once_and_the_healthy_are_not(report, caplog):
    report.succeeded("s")
    report.failed("s", Unreachable("a"))
    report.succeeded("s")
    report.succeeded("s")
    assert caplog.messages == ["unreachable: check TUNNEL_PORT", "reached again"]


def test_subjects_have_states_of_their_own(report, caplog):
    report.failed("s", Unreachable("a"))
    report.failed("t", Unreachable("a"))
    report.succeeded("s")
    report.failed("t", Unreachable("a"))
    assert [record.fields["server"] for record in caplog.records] == ["s", "t", "s"]


def test_an_error_without_a_line_of_its_own_is_logged_all_the_same(report, caplog):
    report.failed("s", PeerError("odd"))
    assert caplog.records[0].fields["cause"] == "odd"


def test_changes_of_state_have_a_limit_of_lines_a_minute_and_the_rest_is_counted(caplog):
    now = 0.0
    report = OutageLog("peer", LINES, "well", clock=lambda: now)
    for _ in range(1000):
        report.failed("s", Unreachable("a"))
        report.failed("s", IdentityRefused("b"))
    assert len(caplog.records) == LINES_A_MINUTE
    now = 61.0
    report.failed("t", Unreachable("c"))
    assert caplog.records[-1].fields == {"peer": "t", "cause": "c", "left_out": 2000 - LINES_A_MINUTE}


def test_any_number_of_subjects_takes_bounded_memory(report):
    for index in range(5000):
        report.failed(str(index), Unreachable("a"))
    assert len(report._faults) == 1000
