"""The view of an order, from the facts of its clusters."""

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from appliance.kafka.protocol.metadata import NOWHERE, Partition
from appliance.link.model.checkpoint import Gap
from appliance.link.model.order import NO_EPOCH, Epoch, OrderRecord
from appliance.link.model.standby import Member, Members, assign
from appliance.link.model.topic_configs import BEATS_KEPT_MS
from appliance.metrics import ORDER
from appliance.order.model.beats import Beat, LaneBeat
from appliance.order.model.cluster_facts import ClusterFacts, compose
from appliance.order.model.elections import NOT_LISTED
from appliance.order.model.metrics import OrderCollector, exposition
from appliance.order.model.shown import document, page
from appliance.order.model.view import OrderState
from tests.support.order_facts import EPOCH, HOME, OLD, facts, order_view, view


def test_it_says_who_is_home_since_when_and_what_each_cluster_lacks() -> None:
    seen = view(
        orange=HOME,
        grape=facts(OrderRecord(EPOCH, 95), end=45),
        lemon=facts(OrderRecord(OLD, 80), end=3),
    )
    (lane,), (partition,) = seen.lanes, seen.partitions
    assert (lane.epoch, lane.since, lane.promised, lane.before) == (EPOCH, 5000, ("orange", "grape", "lemon"), OLD)
    assert (partition.open, partition.length) == (True, 100)
    assert [(part.cluster, part.rank, part.lacks, part.unshown) for part in partition.parts] == [
        ("orange", 90, 10, 10),
        ("grape", 95, 5, None),
        ("lemon", 80, 20, None),
    ]
    assert [(each.cluster, each.next_offset, each.backlog) for each in partition.origins] == [
        ("grape", 40, 5),
        ("lemon", 0, 3),
        ("orange", 60, 0),
    ]
    assert seen.state is OrderState.ORDERING
    assert seen.problems == ()


def test_all_is_ordered_where_nothing_waits_anywhere() -> None:
    assert order_view().state is OrderState.ORDERED


def test_of_a_cluster_that_cannot_be_read_nothing_is_said() -> None:
    seen = view(orange=HOME, grape=facts(OrderRecord(EPOCH, 95), end=45), lemon="the tunnel is cut")
    assert [part.cluster for part in seen.partitions[0].parts] == ["orange", "grape"]
    assert {each.cluster for each in seen.partitions[0].origins} == {"orange", "grape"}
    assert seen.state is OrderState.UNKNOWN
    assert [(each.subject, each.reason) for each in seen.problems] == [("lemon", "unknown now: the tunnel is cut")]


def test_case_1374_a_member_that_is_not_in_global_clusters_is_unknown() -> None:
    seen = view(orange=HOME, graype=facts(OrderRecord(EPOCH, 95)), lemon=facts(OrderRecord(EPOCH, 80)))
    assert seen.state is OrderState.UNKNOWN
    assert [(each.subject, each.reason) for each in seen.problems] == [("grape", f"unknown now: {NOT_LISTED}")]


def test_without_the_home_nobody_knows_what_is_lacking_or_waits() -> None:
    follower = facts(OrderRecord(EPOCH, 95), end=45)
    seen = view(orange="it is down", grape=follower, lemon=follower)
    (partition,), (lane,) = seen.partitions, seen.lanes
    assert (lane.epoch, lane.since) == (EPOCH, None)
    assert (partition.open, partition.length) == (None, None)
    assert {part.lacks for part in partition.parts} == {None}
    assert {each.backlog for each in partition.origins} == {None}
    assert seen.state is OrderState.UNKNOWN


def test_an_origin_whose_end_cannot_be_asked_has_an_unknown_backlog() -> None:
    seen = view(orange=HOME, grape=replace(facts(OrderRecord(EPOCH, 95)), spans={}), lemon=facts(OrderRecord()))
    assert [each.backlog for each in seen.partitions[0].origins] == [None, 0, 0]
    assert seen.state is OrderState.ORDERING


def test_an_epoch_that_is_promised_and_not_open_is_no_home() -> None:
    newer = Epoch(3, "grape")
    seen = view(orange=HOME, grape=facts(OrderRecord(EPOCH, 95), newer), lemon=facts(OrderRecord(EPOCH, 80)))
    assert seen.lanes[0].epoch == newer
    assert seen.partitions[0].open is False
    assert seen.state is OrderState.NO_HOME
    assert "promised by grape" in seen.problems[0].reason


def test_nobody_has_promised_anything_where_no_process_has_run() -> None:
    empty = ClusterFacts([], {}, {"orders": 1}, {})
    assert view(orange=empty, grape=empty).state is OrderState.NEVER_RUN
    assert view(orange=empty, grape="it is down").state is OrderState.UNKNOWN


@pytest.mark.parametrize(
    ("record", "state", "remedies"),
    [
        (OrderRecord(EPOCH, 95, alone=OLD), OrderState.ALONE, []),
        (
            OrderRecord(EPOCH, 95, stopped="it has other records: `appliance order rebuild`"),
            OrderState.STOPPED,
            ["bin/appliance order rebuild"],
        ),
    ],
)
def test_what_needs_an_operator_is_named_with_its_commands(
    record: OrderRecord, state: OrderState, remedies: list[str]
) -> None:
    seen = view(orange=HOME, grape=facts(record), lemon=facts(OrderRecord(EPOCH, 80)))
    assert seen.state is state
    (problem,) = document(seen)["problems"]
    assert (problem["subject"], problem["remedies"]) == ("orders-0 of grape", remedies)


def test_in_json_the_unknown_is_null_and_times_are_iso_8601() -> None:
    told = document(view(orange="it is down", grape=facts(OrderRecord())))
    assert told["at"] == "1970-01-01T00:00:10.000Z"
    assert told["lanes"][0]["epoch"] == {"number": 2, "home": "orange"}
    assert told["lanes"][0]["since"] is None
    assert told["partitions"][0]["parts"][0]["accepted"] is None


def test_the_entries_of_a_clusters_gap_ledger_are_counted_and_those_of_an_unknown_one_are_not() -> None:
    gap = Gap(Partition("lemon:orders", 0), NOWHERE, 3, 7, "retention", 0)
    seen = view(orange=replace(HOME, gaps=[gap]), grape=facts(OrderRecord(EPOCH, 95)), lemon="it is down")
    assert [each.gaps for each in seen.clusters] == [1, 0, None]


def test_the_host_that_writes_in_a_cluster_is_named_with_those_that_stand_by() -> None:
    first, second = Member("a", "vm-a", 1, ready=True), Member("b", "vm-b", 2, ready=True)
    processes = Members([first, second], assign([first, second], 1))
    seen = view(orange=replace(HOME, processes=processes), grape=facts(OrderRecord(EPOCH, 95)), lemon="it is down")
    assert [(each.active, each.standbys) for each in seen.clusters] == [("vm-a", ("vm-b",)), (None, ()), (None, ())]
    assert "vm-a writes, vm-b stands by" in page(seen, fresh=True)


def samples(page: bytes) -> dict[str, list[float]]:
    """The values of each metric."""
    families = [*text_string_to_metric_families(page.decode())]
    return {family.name: [sample.value for sample in family.samples] for family in families}


def test_the_metrics_of_an_order_are_those_of_the_list() -> None:
    page = samples(exposition(OrderCollector(order_view(), {0: True}, fresh=True)))
    assert page.keys() == {metric.name for metric in ORDER}
    assert page["kafka_order_records"] == [100, 100, 100]
    assert page["kafka_order_home_silent"] == [1]


def test_an_unknown_number_of_an_order_has_no_sample() -> None:
    follower = facts(OrderRecord(EPOCH, 95), end=45)
    page = samples(exposition(OrderCollector(view(orange="it is down", grape=follower), {}, fresh=True)))
    assert page["kafka_order_cluster_reachable"] == [0, 1]
    for name in ("open", "lacks_records", "backlog_offsets", "home_since_seconds"):
        assert page[f"kafka_order_{name}"] == []


def test_of_a_stale_view_only_its_time_is_told() -> None:
    page = samples(exposition(OrderCollector(order_view(), {0: False}, fresh=False)))
    assert page == {"kafka_order_snapshot_timestamp_seconds": [10]}


def beats(epoch: Epoch, *seconds: int) -> ClusterFacts:
    """The facts of the home with beats of a lane in an epoch at these times."""
    return replace(HOME, beats=[(at * 1000, Beat("orange", (LaneBeat(epoch),))) for at in seconds])


@pytest.mark.parametrize(
    ("home", "heard"),
    [
        (beats(EPOCH, 80, 95), 95_000),
        (beats(EPOCH, 80, 90), 90_000),
        (beats(NO_EPOCH, 80, 95), 80_000),
        (beats(EPOCH), 100_000 - BEATS_KEPT_MS),
        (replace(HOME, beats=None), None),
    ],
    ids=["it is at work", "not for long", "a lane is not: not before", "none is kept", "unknown"],
)
def test_the_process_of_a_cluster_is_heard_by_its_beats(home: ClusterFacts, heard: int | None) -> None:
    other = replace(facts(OrderRecord(EPOCH, 95)), beats=beats(EPOCH, 99).beats)
    seen = compose({"orange": home, "grape": other, "lemon": other}, 100_000, single=False)
    assert seen.clusters[0].heard == heard
    assert (seen.state is OrderState.SILENT) == (heard is not None and heard <= 90_000)
    assert (seen.state is OrderState.UNKNOWN) == (heard is None)


def test_case_1377_the_word_that_makes_another_home_is_printed_where_too_few_are_left_to_do_it_by_themselves() -> None:
    # Nothing was printed where home and others were out of reach, though no cluster could become home.
    follower = facts(OrderRecord(EPOCH, 95))
    (by_itself,) = view(orange="it is down", grape=follower, lemon=follower).problems
    assert by_itself.reason == "unknown now: it is down; it is home: another cluster becomes home by itself"
    home, other = view(orange="it is down", grape="it is down", lemon=follower).problems
    assert home.remedies == ("bin/appliance order move --to lemon --lost grape,orange",)
    assert other.reason == "unknown now: it is down"
