import random
from dataclasses import replace

from appliance.console.model.charts import chart, marks, spark
from appliance.console.model.events import HAND_OVER, PROMOTION, RESTART, STOP, Event
from appliance.console.model.history import PARTITIONS_MAX, TOPICS_MAX, History
from appliance.console.model.rings import Subject
from appliance.kafka.protocol.metadata import Partition
from appliance.status.model.facts import Log
from tests.support.console import of_size
from tests.support.facts import NOW, SILENT, snapshot, with_logs, with_position

HOUR_MS = 3_600_000
LINK = "replicator-orange"


def behind(lag: int, now: int) -> History:
    """A history of one snapshot, with this lag of ``payments-0``."""
    history = History()
    history.add(snapshot(with_logs({Partition("payments", 0): Log(-1, 100 + lag, 100 + lag)}), now=now))
    return history


def test_rates_come_from_two_snapshots_and_are_unknown_before() -> None:
    history = History()
    before = snapshot()
    history.add(before)
    assert history.newest is not None
    assert (history.newest.records, history.newest.bytes) == (None, None)
    after = snapshot(destination=with_position(records=110, bytes=11_000), previous=before, now=NOW + 2000)
    history.add(after)
    assert (history.newest.records, history.newest.bytes) == (10, 1000)


def test_what_a_silent_cluster_hides_is_a_hole_and_no_zero() -> None:
    history = History()
    history.add(snapshot(SILENT, previous=snapshot()))
    assert history.newest is not None
    assert (history.newest.lag_records, history.newest.lag_seconds) == (None, None)
    behind_by_30 = snapshot(with_logs({Partition("payments", 0): Log(-1, 130, 130)}), previous=snapshot(now=NOW - 2000))
    history.add(replace(behind_by_30, at=NOW + 10_000))
    assert (history.newest.lag_records, history.newest.lag_seconds) == (30, 0)
    assert chart(history, (), LINK, "hour")["series"][0]["lag_records"] == [None, 30]


def test_a_time_without_samples_is_a_hole_and_the_rate_after_it_is_the_mean() -> None:
    history = behind(0, NOW)
    after = snapshot(destination=with_position(records=90 + 600), now=NOW + 600_000)
    history.add(after)
    drawn = chart(history, (), LINK, "hour")
    assert drawn["series"][0]["lag_records"] == [0, None, 0]
    assert drawn["series"][0]["records"] == [None, None, 1]


def test_what_is_older_than_an_hour_is_in_the_day_alone_and_older_than_a_day_in_neither() -> None:
    history = History()
    for passed in (0, HOUR_MS // 2, HOUR_MS + 10_000):
        history.add(replace(snapshot(), at=NOW + passed))
    assert _times(history, "hour") == [NOW + HOUR_MS // 2, NOW + HOUR_MS + 10_000]
    assert NOW in _times(history, "day")
    history.add(replace(snapshot(), at=NOW + 25 * HOUR_MS))
    assert _times(history, "day") == [NOW + 25 * HOUR_MS]


def _times(history: History, tier: str) -> list[int]:
    """The times at which something was known."""
    drawn = chart(history, (), LINK, tier)
    known = zip(drawn["at"], drawn["series"][0]["lag_records"], strict=True)
    return [round(at * 1000) for at, lag in known if lag is not None]


def test_a_step_keeps_its_largest_lag() -> None:
    history = behind(700, NOW)
    history.add(snapshot(now=NOW + 3000))
    assert chart(history, (), LINK, "hour")["series"][0]["lag_records"] == [700]
    assert max(filter(None, spark(history, Subject("payments", 0)))) == 700
    assert spark(history, Subject("nothing")) == []


def test_a_topic_is_drawn_with_its_worst_partitions_on_the_links_time_axis() -> None:
    history = History()
    history.add(of_size({"orders": 30, "payments": 2}))
    drawn, link = chart(history, (), LINK, "day", "orders"), chart(history, (), LINK, "day")
    assert [one["name"] for one in drawn["series"]][:2] == ["orders", "orders-6"]
    assert (len(drawn["series"]), len(link["series"])) == (11, 1)
    assert (drawn["from"], drawn["to"]) == (link["from"], link["to"]) == ((NOW - 24 * HOUR_MS) / 1000, NOW / 1000)


def test_of_many_partitions_the_stopped_and_the_worst_of_the_day_have_curves_and_the_others_are_counted() -> None:
    history = History()
    first = of_size({"orders": 400, "stopped": 1} | {f"topic-{n}": 1 for n in range(150)}, stopped=0)
    history.add(first)
    assert history.left_out == (52, 351)
    taken = of_size({"orders": 400, "stopped": 3} | {f"topic-{n}": 1 for n in range(150)}, now=NOW + 20_000)
    *others, topic = (each for each in taken.topics if each.name != "orders")
    worst = max(taken.topics[0].partitions, key=lambda each: each.lag_records or 0)
    raised = replace(taken.topics[0].partitions[7], lag_records=9_999)
    orders = replace(taken.topics[0], partitions=(*taken.topics[0].partitions[:7], raised, worst))
    history.add(replace(taken, topics=(orders, *others, topic)))
    history.add(replace(first, at=NOW + 40_000))
    kept = history.rings["hour"].of
    assert Subject("orders", 7) in kept, "it was the worst of the day"
    assert sum(one.partition < 0 for one in kept) == TOPICS_MAX + 1
    assert sum(one.partition >= 0 for one in kept) == PARTITIONS_MAX


def test_a_stopped_partition_has_a_curve_before_one_that_is_behind() -> None:
    history = History()
    history.add(of_size({"a": 300, "z": 1}, stopped=0))
    stopped = of_size({"a": 300, "z": 1}, now=NOW + 20_000, stopped=1)
    history.add(replace(stopped, topics=(of_size({"a": 300}, now=NOW + 20_000).topics[0], stopped.topics[1])))
    assert Subject("z", 0) in history.rings["hour"].of


def test_latency_is_the_median_of_the_partitions_that_copied_something() -> None:
    history, before = History(), snapshot()
    copied = with_position(records=91, timestamp=NOW + 1000)
    history.add(
        snapshot(destination=replace(copied, committed_at={Partition("payments", 0): NOW + 1040}), previous=before)
    )
    assert history.newest is not None
    assert history.newest.latency_ms == 40


def test_case_282_samples_of_a_clock_that_was_set_back_are_forgotten() -> None:
    history = History()
    for at in (NOW, NOW + 60_000, NOW + 10_000):
        history.add(snapshot(now=at))
    assert _times(history, "hour") == [NOW, NOW + 10_000]


def test_the_marks_are_stops_restarts_hand_overs_and_promotions_and_those_beside_each_other_are_one() -> None:
    history = behind(0, NOW)
    taken = "taken by run {}, which fences every run before"
    events = [
        Event(NOW - 9, "the link", "promoted", "ann@vm", PROMOTION),
        *(Event(NOW - 20, f"orders-{number}", "stopped: a gap", mark=STOP) for number in range(5)),
        Event(NOW - 400_000, "lanes 0, 1", taken.format("c"), "grape-vm-2", RESTART),
        Event(NOW - 800_000, "lanes 0, 1", taken.format("b"), "grape-vm", RESTART),
        Event(NOW - 2 * HOUR_MS, "lanes 0, 1", taken.format("a"), "grape-vm", RESTART),
        Event(NOW - 5, "payments", "found"),
    ]
    random.Random(1).shuffle(events)
    shown = [(each.mark, each.subject) for each in marks(history, events, LINK, "hour")]
    assert shown == [
        (RESTART, "lanes 0, 1"),
        (HAND_OVER, "lanes 0, 1"),
        (STOP, "orders-0, orders-1, orders-2 and 2 more"),
        (PROMOTION, "the link"),
    ]
    assert len(marks(history, events, LINK, "day")) == 5
    of_topic = [each.mark for each in marks(history, events, LINK, "hour", "payments")]
    assert of_topic == [RESTART, HAND_OVER, PROMOTION]


def test_case_1473_the_curves_of_topics_outlive_a_look_at_which_no_cluster_answers() -> None:
    # A control center that began in an outage dropped the day of every topic, just when one needs it.
    history = behind(30, NOW)
    history.add(replace(snapshot(SILENT), at=NOW + 60_000, topics=()))
    series = chart(history, (), LINK, "hour", "payments")["series"]
    assert [each["name"] for each in series] == ["payments", "payments-0", "payments-1"]
    assert series[0]["lag_records"][0] == 30


def test_case_1474_a_chart_has_no_mark_of_another_topic_or_of_a_time_to_come() -> None:
    history = behind(0, NOW)
    events = [
        Event(NOW - 9, "payments-eu", "promoted", "ann@vm", PROMOTION),
        Event(NOW - 9, "payments-0", "stopped: a gap", mark=STOP),
        Event(NOW + HOUR_MS, "payments-0", "stopped: a gap", mark=STOP),
    ]
    assert [each.mark for each in marks(history, events, LINK, "hour", "payments")] == [STOP]
