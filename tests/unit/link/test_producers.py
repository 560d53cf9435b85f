"""The producer ids of lanes: which batches are copies, and when that can no longer be told."""

import json
import re
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import ProducersLost
from appliance.kafka.client.transactions import Producer
from appliance.kafka.records.batch import TRANSACTIONAL, Header
from appliance.kafka.records.records import Record, body, key_and_value
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import OwnCopies, SharedCopies, Suffix
from appliance.link.model.producers import Producers, RegisteredProducer, encode_producer, link_of

NAMING = Naming("replicator-orange", Suffix(after=".copy"), re.compile(".*"), re.compile(""), sharing=SharedCopies())
ALONE = replace(NAMING, sharing=OwnCopies())
LANE = Producer("replicator-orange.lane-3", 4000, 7)


def header(producer_id: int, attributes: int = TRANSACTIONAL, epoch: int = 0) -> Header:
    return Header(0, 0, 0, 2, 0, attributes, 0, 0, 0, producer_id, epoch, 0, 1)


def known(*producers: Producer, cluster: str = "grape") -> Producers:
    found = Producers("grape")
    found.take(encode_producer(cluster, producer, NAMING, 1) for producer in producers)
    return found


def test_a_transactional_batch_with_a_registered_producer_id_is_a_copy() -> None:
    producers = known(LANE)
    producers.others.add(4001)
    assert producers.is_copy(header(4000))
    assert not producers.is_copy(header(4001))
    assert not producers.is_copy(header(-1, attributes=0))
    assert producers.of_link("replicator-orange") == {4000}


def test_a_name_that_is_written_again_with_a_newer_epoch_changes_nothing() -> None:
    assert known(LANE, Producer(LANE.transactional_id, LANE.id, 8)).is_copy(header(4000))


def test_a_producer_id_of_another_cluster_is_no_lanes_here() -> None:
    assert known(LANE, cluster="lime").unknown([header(4000)]) == {4000}


def test_only_unknown_producer_ids_of_transactional_batches_are_looked_up() -> None:
    producers = known(LANE)
    producers.others.add(5)
    headers = [header(4000), header(5), header(6), header(7, attributes=0), header(-1, attributes=0)]
    assert producers.unknown(headers) == {6}


def test_a_producer_id_of_two_lanes_was_handed_out_twice() -> None:
    with pytest.raises(ProducersLost, match="producer id 4000 is that of replicator-orange"):
        known(LANE, Producer("replicator-x.lane-0", 4000, 0))


def test_a_lane_that_leaves_its_name_after_its_batches_were_copied_is_noticed() -> None:
    producers = known()
    producers.others.add(4000)
    with pytest.raises(ProducersLost, match="has left its name for producer id 4000 after its batches"):
        producers.take([encode_producer("grape", LANE, NAMING, 1)])


def test_a_registered_producer_id_on_a_batch_without_a_transaction_was_handed_out_twice() -> None:
    with pytest.raises(ProducersLost, match="is not transactional and has producer id 4000"):
        known(LANE).is_copy(header(4000, attributes=0))


def test_a_tombstone_takes_no_name_away() -> None:
    producers = known(LANE)
    (key,) = [b'{"cluster":"grape","producer":4000}']
    producers.take([Record(0, 1, body(key, None))])
    assert producers.is_copy(header(4000))


@given(st.binary(), st.binary() | st.none())
def test_what_no_link_wrote_there_names_no_lane(key: bytes, value: bytes | None) -> None:
    producers = Producers("grape")
    producers.take([Record(3, 1, body(key, value))])
    assert producers == Producers("grape")


@pytest.mark.parametrize("value", [b"garbage", b'{"version":1,"epoch":1e400}', b"[" * 100_000])
def test_case_1026_a_name_that_cannot_be_read_stops_the_batches_of_its_producer_id_alone(value: bytes) -> None:
    producers = known(LANE)
    producers.take([Record(3, 1, body(b'{"cluster":"grape","producer":4001}', value))])
    assert producers.is_copy(header(4000))
    assert producers.unknown([header(4001)]) == set()
    with pytest.raises(ProducersLost, match="holds something else at offset 3"):
        producers.is_copy(header(4001))
    producers.take([encode_producer("grape", Producer("replicator-orange.lane-4", 4001, 7), NAMING, 1)])
    assert producers.is_copy(header(4001))


def test_case_1050_a_producer_id_that_was_found_to_be_anothers_stays_so() -> None:
    producers = known(LANE)
    producers.others.add(4001)
    producers.take([Record(3, 1, body(b'{"cluster":"grape","producer":4001}', b"{"))])
    assert not producers.is_copy(header(4001))


@pytest.mark.parametrize(
    ("transactional_id", "link"),
    [
        ("replicator-orange.lane-3", "replicator-orange"),
        ("replicator-a.lane-1.lane-12", "replicator-a.lane-1"),
        ("replicator-orange.failback-grape.lane-0", "replicator-orange.failback-grape"),
        ("replicator-orange.lane-x", ""),
        ("app", ""),
    ],
)
def test_the_link_of_a_lane_is_in_its_transactional_id(transactional_id: str, link: str) -> None:
    assert link_of(transactional_id) == link


def as_the_release_before(records: Iterable[Record], cluster: str) -> set[int]:
    """The producer ids whose batches a release drops that knows no lane that keeps to itself."""
    dropped = set()
    for record in records:
        key_bytes, value_bytes = key_and_value(record.body)
        key, value = json.loads(key_bytes or b""), json.loads(value_bytes or b"null")
        assert value is None or value["version"] == 1  # it would stop each partition otherwise
        if str(key["cluster"]) == cluster and value is not None:
            assert (str(value["transactional_id"]), str(value["link"])) != ("", "")
            dropped.add(int(key["producer"]))
    return dropped


def test_case_641_what_a_lane_wrote_that_keeps_to_itself_is_copied_here_and_by_the_release_before() -> None:
    # A failback, or a link whose claims were gone, left no name: links of identical names stopped for days.
    records = [
        encode_producer("grape", LANE, NAMING, 1),
        encode_producer("grape", replace(LANE, transactional_id="replicator-x.lane-0", id=4001), ALONE, 1),
    ]
    producers = Producers("grape")
    producers.take(records)
    assert producers.unknown([header(4000), header(4001)]) == set()
    assert (producers.is_copy(header(4000)), producers.is_copy(header(4001))) == (True, False)
    assert as_the_release_before(records, "grape") == {4000}


def test_case_642_a_link_that_begins_to_share_is_found_out_by_the_epoch_of_its_batches() -> None:
    # Its producer id was among those of others: its copies travelled on, until its name was read; then nothing did.
    producers = Producers("grape")
    producers.add(RegisteredProducer(LANE.id, LANE.transactional_id, "replicator-orange", 6, ((0, False),)))
    before, after = header(LANE.id, epoch=6), header(LANE.id, epoch=7)
    assert producers.unknown([before, after]) == {LANE.id}
    producers.take([encode_producer("grape", LANE, NAMING, 1)])
    assert producers.unknown([before, after]) == set()
    assert (producers.is_copy(before), producers.is_copy(after)) == (False, True)
    assert producers.unknown([header(LANE.id, epoch=8)]) == {LANE.id}


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.lists(st.booleans(), min_size=9, max_size=9), st.booleans())
def test_each_epochs_batches_are_known_whatever_a_link_shared_since_and_whatever_was_compacted(
    shared: list[bool], read: list[bool], compacted: bool
) -> None:
    topic, reader = list[tuple[bytes | None, Record]](), Producers("grape")
    for epoch, shares in enumerate(shared):
        names = Producers("grape")
        names.take(record for _, record in topic)
        lane = replace(LANE, epoch=epoch)
        record = encode_producer("grape", lane, NAMING if shares else ALONE, 1, names.lanes.get(lane.id))
        key = key_and_value(record.body)[0]
        topic = [*(each for each in topic if not compacted or each[0] != key), (key, record)]
        if read[epoch]:
            reader.take(record for _, record in topic)
    reader.take(record for _, record in topic)
    assert [reader.is_copy(header(LANE.id, epoch=epoch)) for epoch in range(len(shared))] == shared
