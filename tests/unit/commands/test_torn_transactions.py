from appliance.commands.model.report import Report
from appliance.commands.model.torn_transactions import (
    Ended,
    Share,
    TornTransaction,
    TornTransactions,
    torn_transactions,
    uncopied_producers,
)
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.committed import EndedTransaction

A, B, C = (Partition("a", 0), Partition("b", 0), Partition("c", 0))
POSITIONS = {A: 100, B: 100, C: 100}


def ended(partition: tuple[str, int], first: int, began: int, at: int, epoch: int = 0, records: int = 5) -> Ended:
    last = first + records - 1
    return partition, EndedTransaction(7, epoch, first, last, last + 1, began, at)


def torn(*shares: Ended) -> list[tuple[list[str], list[str]]]:
    """Of each torn transaction the partitions that were copied, and those that were not."""
    found = torn_transactions(shares, POSITIONS)
    return [([s.topic for s in each.copied], [s.topic for s in each.not_copied]) for each in found]


def test_a_transaction_is_torn_where_some_partitions_are_copied_and_others_are_not() -> None:
    shares = ended(A, 90, 0, 50), ended(B, 80, 10, 52), ended(C, 100, 20, 49)
    assert torn(*shares) == [(["a", "b"], ["c"])]


def test_one_that_is_copied_whole_or_not_at_all_is_not_torn() -> None:
    assert torn(ended(A, 80, 0, 50), ended(B, 80, 0, 50)) == []
    assert torn(ended(A, 100, 0, 50), ended(B, 120, 0, 50)) == []


def test_a_partition_that_is_copied_up_to_the_middle_of_one_is_among_both() -> None:
    (found,) = torn_transactions([ended(A, 98, 0, 50)], POSITIONS)
    assert found == TornTransaction(7, 0, (Share("a", 0, 98, 99),), (Share("a", 0, 100, 102),))


def test_transactions_of_one_epoch_are_told_apart_by_their_markers() -> None:
    # The one before is copied whole; its marker is nearer to the other's first record than to its marker.
    assert torn(ended(A, 90, 0, 50), ended(B, 100, 48, 90)) == []
    # Both wrote to all: each partition has one share of each.
    before = [ended(A, 80, 0, 50), ended(B, 90, 1, 51), ended(C, 80, 2, 50)]
    after = [ended(A, 90, 51, 80), ended(B, 100, 52, 79), ended(C, 90, 53, 81)]
    assert torn(*before, *after) == [(["a", "c"], ["b"])]


def test_where_each_transaction_has_an_epoch_markers_may_be_far_apart() -> None:
    slow = [ended(A, 90, 0, 50, epoch=3), ended(B, 100, 40, 5_000, epoch=3)]
    assert torn(*slow) == []
    assert torn(*slow, ended(A, 110, 6_000, 6_010, epoch=4)) == [(["a"], ["b"])]


def test_only_producers_matter_of_which_something_was_not_copied() -> None:
    assert uncopied_producers([ended(A, 90, 0, 50)], POSITIONS) == set()
    assert uncopied_producers([ended(A, 96, 0, 50)], POSITIONS) == {7}


def test_the_report_names_them_and_calls_unknown_what_nobody_tells() -> None:
    found = torn_transactions([ended(A, 90, 0, 50), ended(B, 100, 1, 51)], POSITIONS)
    report = Report("replicator-a", torn=TornTransactions(tuple(found), (C,)))
    assert report.document()["transactions_copied_in_part"] == {
        "found": [
            {
                "producer_id": 7,
                "producer_epoch": 0,
                "copied": ({"topic": "a", "partition": 0, "first": 90, "last": 94},),
                "not_copied": ({"topic": "b", "partition": 0, "first": 100, "last": 104},),
            }
        ],
        "not_read": [{"topic": "c", "partition": 0}],
    }
    assert str(found[0]) == (
        "transaction of producer 7, epoch 0: copied offsets a-0 90 to 94; not copied b-0 100 to 104"
    )
    assert Report("replicator-a", torn=None).document()["transactions_copied_in_part"] is None
