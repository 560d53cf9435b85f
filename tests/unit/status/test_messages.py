from dataclasses import replace

from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import Gap
from appliance.status.model.facts import DestinationFacts, Log, SourceFacts
from appliance.status.model.messages import problems, remarks
from tests.support.facts import (
    DESTINATION,
    NOW,
    SILENT,
    SOURCE,
    SOURCE_ID,
    metadata,
    snapshot,
    with_logs,
    with_position,
)
from tests.support.settings import SECRET

AT = "2027-01-15T08:00:00.000Z"
KEY = Partition("payments", 0)


def test_a_link_that_is_well_has_no_troubles_and_a_troubled_one_has() -> None:
    assert problems(snapshot()) == []
    for status in (
        snapshot(source=SILENT),
        snapshot(destination=SILENT),
        snapshot(destination=DestinationFacts(metadata())),
        snapshot(destination=with_position(stopped="too large", stopped_at=NOW)),
        snapshot(replace(SOURCE, logs={}, unanswered={KEY: "no leader"})),
    ):
        assert not status.state.well
        assert problems(status)


def test_a_silent_cluster_is_told_once_and_not_for_each_partition() -> None:
    assert problems(snapshot(source=SILENT)) == [f"source cluster orange: unknown since {AT}: {SILENT}"]


def test_a_stop_is_told_with_its_time_and_reason() -> None:
    assert problems(snapshot(destination=with_position(stopped="too large", stopped_at=NOW))) == [
        f"payments-0: stopped since {AT}: too large"
    ]


def test_a_stop_says_the_name_of_its_partition_once() -> None:
    stopped = with_position(stopped="payments-0 offset 7 is damaged", stopped_at=NOW)
    assert problems(snapshot(destination=stopped)) == [f"payments-0: stopped since {AT}: offset 7 is damaged"]


def test_a_link_that_never_ran_is_told_what_to_start() -> None:
    (told,) = problems(snapshot(destination=DestinationFacts(metadata())))
    assert told == "replicator-orange: never run: start it with `appliance replicate`"


def test_an_open_transaction_is_told_as_far_as_the_brokers_name_it() -> None:
    def told(transaction: OpenTransaction) -> str:
        (remark,) = remarks(snapshot(replace(with_logs({KEY: Log(-1, 100, 130)}), holding={KEY: transaction})))
        return remark

    what = "payments-0: 30 offsets from 100 on wait for a transaction"
    assert told(OpenTransaction(100, 7, "till-3", NOW)) == f"{what} of till-3 (producer id 7) that is open since {AT}"
    assert told(OpenTransaction(100, 7, "", NOW)) == f"{what} of producer id 7 that is open since {AT}"
    assert told(OpenTransaction(100, began=NOW)) == f"{what} that is open since {AT}"


def test_gaps_are_told_with_their_offsets_as_far_as_anybody_can_know_them() -> None:
    gaps = (Gap(KEY, SOURCE_ID, 10, 15, "deleted", NOW), Gap(KEY, SOURCE_ID, 20, -1, "made anew", NOW))
    assert remarks(snapshot(destination=replace(DESTINATION, gaps={KEY: gaps}))) == [
        f"payments-0: gap, found {AT}: offsets 10 to 14 will never be copied: deleted",
        f"payments-0: gap, found {AT}: offset 20 and what followed it will never be copied: made anew",
    ]


def test_a_topic_of_the_past_is_told() -> None:
    (told,) = remarks(snapshot(SourceFacts(metadata())))
    assert told.startswith("payments: no longer at the source")


def test_a_previous_secret_that_is_still_set_is_told_and_is_no_trouble() -> None:
    status = snapshot(SHARED_SECRET_PREVIOUS=SECRET)
    assert [line.partition(":")[0] for line in remarks(status)] == ["SHARED_SECRET_PREVIOUS is set"]
    assert (remarks(snapshot()), problems(status)) == ([], [])
