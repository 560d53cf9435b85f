from appliance.status.model.document import health
from tests.support.facts import NOW, SILENT, snapshot, with_position


def test_a_link_that_copies_is_healthy() -> None:
    assert health(snapshot(), NOW) == (True, {"state": "copied", "at": "2027-01-15T08:00:00.000Z", "troubles": []})


def test_a_silent_cluster_and_a_stopped_partition_are_not_healthy_and_say_why() -> None:
    for status in (snapshot(source=SILENT), snapshot(destination=with_position(stopped="large", stopped_at=NOW))):
        well, answer = health(status, NOW)
        assert not well
        assert answer["troubles"]


def test_before_the_first_look_nothing_is_known() -> None:
    assert health(None, NOW) == (False, {"state": "unknown", "at": None, "troubles": ["there is no snapshot yet"]})


def test_a_snapshot_from_too_long_ago_says_nothing_about_now() -> None:
    assert health(snapshot(), NOW + 30_000)[0]
    well, answer = health(snapshot(), NOW + 30_001)
    assert not well
    assert answer["state"] == "unknown"
    assert answer["troubles"] == ["no snapshot since 2027-01-15T08:00:00.000Z"]
