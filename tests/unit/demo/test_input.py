"""The input has the requested number of records, has every kind, and is always the same."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Suffix
from demo.input import COPIED, NOT_COPIED, RECORDS_MIN, REGEX, SUFFIX, TOPICS, Batching, Input, InputTopic
from testbed.reading import fingerprint

NOW = 1_800_000_000_000
NAMING = Naming("replicator-orange", Suffix(after=f".{SUFFIX}"), re.compile(REGEX), re.compile(""))


def named(name: str) -> InputTopic:
    return next(topic for topic in COPIED if topic.name == name)


@given(st.integers(RECORDS_MIN, 10_000_000))
def test_the_topics_together_have_as_many_records_as_were_asked_for(records):
    source = Input(records, NOW)
    counts = {topic: source.count(topic) for topic in COPIED}
    assert sum(counts.values()) == records
    assert all(count > 0 for count in counts.values())


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_the_halves_of_a_topic_are_all_of_it(topic):
    source = Input(5001, NOW)
    numbers = [*source.half(topic, second=False), *source.half(topic, second=True)]
    assert numbers == list(range(source.count(topic)))


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_every_record_of_a_partition_is_one_of_a_kind(topic):
    source = Input(200_000, NOW)
    prints = Counter(
        (record.partition, fingerprint(record.key, record.value, record.headers, record.timestamp))
        for record in source.of(topic, range(min(3000, source.count(topic))))
    )
    assert max(prints.values()) == 1
    assert {partition for partition, _ in prints} == set(range(topic.partitions))


def test_two_runs_have_the_same_records():
    topic = named("orders.headers")
    assert list(Input(1000, NOW).of(topic, range(20))) == list(Input(1000, NOW).of(topic, range(20)))


def test_aborted_records_are_not_the_committed_ones():
    topic = named("orders.transactions")
    (committed,), (aborted,) = (list(Input(1000, NOW).of(topic, [7], note)) for note in ("", "aborted "))
    assert committed.value != aborted.value


def test_a_key_always_goes_to_the_same_partition():
    records = list(Input(10_000, NOW).of(named("orders.bulk"), range(3000)))
    assert len({record.key for record in records}) == len({(record.key, record.partition) for record in records})


def test_there_are_records_of_every_kind():
    source = Input(100_000, NOW)
    few = {topic.name: list(source.of(topic, range(50))) for topic in TOPICS}
    assert {record.key for record in few["orders.keyless"]} == {None}
    assert {record.value is None for record in few["orders.tombstones"]} == {True, False}
    assert {len(record.headers) for record in few["orders.headers"]} == {0, 1, 3}
    assert any(("null", None) in record.headers for record in few["orders.headers"])
    assert 100_000 < max(len(record.value or b"") for record in few["orders.large-batches"]) < 200_000
    assert {topic.codec for topic in TOPICS} == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert {topic.batching for topic in COPIED} == set(Batching)


def test_backdated_records_are_out_of_order_and_in_the_past():
    timestamps = [record.timestamp for record in Input(1000, NOW).of(named("orders.headers"), range(100))]
    assert timestamps != sorted(timestamps)
    assert max(timestamps) < NOW


def test_the_regex_copies_just_the_topics_that_it_is_meant_to():
    assert [topic.name for topic in COPIED if not NAMING.copies(topic.name, internal=False)] == []
    assert [name for name in NOT_COPIED if NAMING.copies(name, internal=False)] == []
    assert [topic.copy for topic in COPIED] == [NAMING.destination(topic.name) for topic in COPIED]
