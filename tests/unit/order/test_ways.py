"""The ways to the clusters of an order, as the log has them."""

from appliance.errors import ApplianceError, BrokerBusy, Unreachable
from appliance.order.ways import Way

RESET, CLOSED = Unreachable("connection reset"), Unreachable("it closed the connection")
BUSY = BrokerBusy("no leader now", "LEADER_NOT_AVAILABLE")


def lines(*told: tuple[str, ApplianceError | None]) -> list[tuple[str, str]]:
    """The lines that these problems leave in the log."""
    logged: list[tuple[str, str]] = []
    way = Way("orange", lambda subject, error: logged.append((subject, str(error or "well again"))))
    for subject, error in told:
        way.tell(subject, error)
    return logged


def test_case_1376_a_way_that_breaks_is_one_line_in_whatever_words_and_one_when_all_reach_the_cluster_again() -> None:
    # Each of three subjects had a line for each change between two wordings, 60 of them in half a minute.
    broken = [("source", RESET), ("topics", CLOSED), ("source", CLOSED), ("source", RESET)]
    assert lines(*broken) == [("way to orange", "connection reset")]
    assert lines(*broken, ("source", None), ("topics", None), ("topics", None)) == [
        ("way to orange", "connection reset"),
        ("way to orange", "well again"),
    ]


def test_other_problems_of_a_cluster_have_their_subjects() -> None:
    assert lines(("source", BUSY), ("source", RESET), ("source", None)) == [
        ("orange: source", "no leader now"),
        ("way to orange", "connection reset"),
        ("way to orange", "well again"),
        ("orange: source", "well again"),
    ]
    assert lines(("source", RESET), ("source", BUSY), ("source", None)) == [
        ("way to orange", "connection reset"),
        ("way to orange", "well again"),
        ("orange: source", "no leader now"),
        ("orange: source", "well again"),
    ]
