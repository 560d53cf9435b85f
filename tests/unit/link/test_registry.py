import re
import uuid
from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

import pytest

from appliance.errors import BrokerRefused, NewerRelease, PeerError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import NOWHERE, Metadata, Partition, Topic
from appliance.kafka.records.records import Record, body
from appliance.link.client.registry import Registry
from appliance.link.model.claim_ledger import ClaimLedger
from appliance.link.model.claims import (
    Claim,
    belongs_to_another,
    decode_claim,
    deletion_of,
    encode_claim,
    topics_of,
    would_travel_in_circles,
)
from appliance.link.model.link_check import was_deleted
from appliance.link.model.link_topics import LinkTopics
from appliance.link.model.naming import REGISTRY, Naming
from appliance.link.model.naming_policies import IdenticalCopies, Prefix, Suffix

COPY = ("orders.copy", uuid.UUID(int=2))
LINK = "replicator-orange"
NAMING = Naming("replicator-lime", Suffix(after=".copy"), re.compile(".*"), re.compile(""))
CLAIM = Claim(LINK, 1_700_000_000_000, ("segment.bytes",), 7)
KEY = b'{"copy":"orders.copy","id":"00000000000000000000000000000002","link":"replicator-orange"}'


def test_a_claim_comes_back_as_it_was() -> None:
    assert decode_claim(encode_claim(COPY, LINK, CLAIM, 1)) == (COPY, LINK, CLAIM)


@pytest.mark.parametrize("claim", [replace(CLAIM, topics=LinkTopics("orders.*")), replace(CLAIM, recorded=True)])
def test_the_claim_of_a_shared_copy_tells_the_topics_of_its_link_or_that_a_record_does(claim: Claim) -> None:
    shared = replace(claim, shares=True)
    assert decode_claim(encode_claim(COPY, LINK, shared, 1)) == (COPY, LINK, shared)


def test_a_claim_is_taken_back_by_a_tombstone() -> None:
    assert decode_claim(encode_claim(COPY, LINK, None, 1)) == (COPY, LINK, None)


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"version":2}'])
def test_a_foreign_record_is_not_taken_for_a_claim(value: bytes) -> None:
    with pytest.raises(PeerError, match="replicator-registry"):
        decode_claim(Record(7, 1, body(KEY, value)))


@pytest.mark.parametrize("compacted", [False, True])
def test_of_two_claims_the_first_holds_and_its_rewriting_does_not_change_that(compacted: bool) -> None:
    # Compaction keeps only the newest record of each key.
    first, second = Claim("replicator-a", 1), Claim("replicator-b", 2)
    rewritten = Claim("replicator-a", 1, ("segment.bytes",), rank=4)
    log = [(4, first), (7, second), (9, rewritten)]
    ledger = ClaimLedger("replicator-a")
    for offset, claim in log[1:] if compacted else log:
        ledger.take([encode_claim(COPY, claim.link, claim, 1)._replace(offset=offset)])
    assert ledger.claims[COPY] == rewritten


class OneBroker(KafkaCluster):
    """A cluster with only a registry of one partition."""

    def __init__(self) -> None:
        pass

    async def metadata(self, _: Collection[str] | None) -> Metadata:
        return Metadata("", 0, {}, {REGISTRY: Topic(REGISTRY, uuid.UUID(int=7), False, (0,))})


async def test_case_33_a_claim_of_a_newer_release_is_refused_each_time_it_is_met(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Before, it was refused once; the next read began after it, and gave the copy to the next claim. Invariant I
    key = body(KEY, b'{"version":2}')
    log = [encode_claim(("orders.other", COPY[1]), LINK, CLAIM, 1), Record(1, 1, key), Record(2, 1, key)]

    async def offsets(*_: object) -> dict[Partition, int]:
        return {(REGISTRY, 0): len(log)}

    async def records(*arguments: object) -> tuple[list[Record], int]:
        return log[max(cast("int", arguments[3]), 0) :], len(log)

    monkeypatch.setattr("appliance.kafka.client.compacted_log.list_offsets", offsets)
    monkeypatch.setattr("appliance.kafka.client.compacted_log.read_records", records)
    registry = Registry(OneBroker(), LINK)
    for _ in range(3):
        with pytest.raises(PeerError, match="version 2 at offset 1: of a newer release"):
            await registry.refresh()


@pytest.mark.parametrize("value", [b"garbage", b'{"version":1,"since":1e400,"left_out":[],"rank":0}', b"[" * 100_000])
def test_case_1025_a_claim_that_cannot_be_read_refuses_its_copy_alone_and_that_of_no_link_refuses_none(
    value: bytes,
) -> None:
    # One such record ended every replicator of the destination at its next start.
    ledger = ClaimLedger("replicator-a", shares=True)
    other = ("orders.other", uuid.UUID(int=3))
    ledger.take([encode_claim(other, "replicator-a", Claim("replicator-a", 1, shares=True), 1)])
    for offset, key in enumerate((b"garbage", value, KEY)):
        ledger.take([Record(offset, 1, body(key, value))])
    refused = ledger.of_others(dict([COPY, other]))
    assert refused.keys() == {COPY[0]}
    assert "holds something else at offset 2" in refused[COPY[0]].damage
    assert {of and of[1] for of in ledger.unreadable} == {None, LINK}
    ledger.take([encode_claim(COPY, LINK, None, 1)])
    assert not ledger.of_others(dict([COPY, other]))
    with pytest.raises(PeerError):
        ClaimLedger(LINK).take([Record(3, 1, body(KEY, value))])
    with pytest.raises(NewerRelease):
        ledger.take([Record(4, 1, body(KEY, b'{"version":2}'))])


def test_a_refusal_names_the_link_that_has_the_copy_and_what_helps() -> None:
    text = belongs_to_another("orders.copy", CLAIM, NAMING)
    assert "orders.copy belongs to link replicator-orange" in text
    assert "REPLICA_TOPICS_DEST_SUFFIX" in text
    assert "--take-over" in text
    assert "another SOURCE_CLUSTER_ID" in belongs_to_another(
        "lime.orders", CLAIM, replace(NAMING, policy=Prefix("lime."))
    )


@pytest.mark.parametrize(
    ("claim", "fault"),
    [
        (replace(CLAIM, shares=True), ""),
        (CLAIM, "orders is a copy of replicator-orange, which does not leave its producer ids at the source: give"),
        (replace(CLAIM, shares=True, damage="garbage"), "which may not leave its producer ids at the source: garbage"),
    ],
    ids=["of a link that shares it", "of one that does not", "of one that nobody knows"],
)
def test_with_identical_names_a_copy_is_copied_on_if_its_links_leave_their_producer_ids(
    claim: Claim, fault: str
) -> None:
    identical = replace(NAMING, sharing=IdenticalCopies(), target="grape")
    assert fault in would_travel_in_circles("orders", [claim], identical, {})
    assert bool(would_travel_in_circles("orders", [claim], identical, {})) is bool(fault)


def test_of_a_link_of_own_copies_only_copies_of_links_from_the_destination_travel_in_circles() -> None:
    back, naming = {"replicator-grape": "in circles"}, replace(NAMING, target="grape")
    opposite = replace(CLAIM, link="replicator-grape")
    assert would_travel_in_circles("orders", [opposite], naming, back).endswith("replicator-grape: in circles")
    assert would_travel_in_circles("orders", [CLAIM], naming, back) == ""


def test_a_link_that_was_deleted_has_that_in_a_record_that_older_releases_take_for_a_claim() -> None:
    deletion = Claim(LINK, 1_700_000_000_000, deleted_by="me@host", why="moved")
    ledger = ClaimLedger(LINK)
    ledger.take([encode_claim(deletion_of(LINK), LINK, deletion, 1)._replace(offset=3)])
    assert ledger.deletion == replace(deletion, rank=3)
    positions, other = Topic("replicator-orange.positions", NOWHERE, False, (0,)), Topic(*COPY, False, (0,))
    ledger.take([encode_claim(COPY, LINK, CLAIM, 1)._replace(offset=4)])
    assert ledger.own(Metadata("", 0, {}, {topic.name: topic for topic in (positions, other)})) == [COPY]
    assert was_deleted(LINK, deletion).startswith(
        "replicator-orange was deleted by me@host at 2023-11-14T22:13:20.000Z (moved), and copies nothing any more"
    )


def test_a_link_that_has_told_its_topics_may_write_them_before_it_has_a_copy() -> None:
    record = Claim(LINK, 1, shares=True, topics=LinkTopics("orders.*"))
    ledger = ClaimLedger("replicator-lime")
    ledger.take([encode_claim(topics_of(LINK), LINK, record, 1)._replace(offset=3)])
    assert ledger.sharing == {LINK}
    assert ledger.topics_of(LINK) == {LinkTopics("orders.*")}
    assert ledger.claims == ledger.claims_of(LINK) == {}  # it is the claim of no copy
    ledger.take([encode_claim(topics_of(LINK), LINK, None, 1)._replace(offset=4)])
    assert ledger.sharing == set()


async def test_case_933_a_writer_whose_producer_id_another_has_replaced_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A replicator ended at its start where another link wrote its claims in the same moment.
    begun = []

    async def write_alone(*_: object) -> None:
        begun.append(1)
        if len(begun) == 1:
            raise BrokerRefused("add replicator-registry-0 to a transaction", "INVALID_PRODUCER_ID_MAPPING")

    monkeypatch.setattr(Registry, "_write_alone", write_alone)
    nothing: Any = None
    await Registry(nothing, LINK)._write(nothing)
    assert len(begun) == 2
