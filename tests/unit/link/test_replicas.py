import re
import uuid
from dataclasses import replace

from kio.schema.errors import ErrorCode

from appliance.kafka.protocol.metadata import Metadata, Topic
from appliance.link.model.layout import Layout
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Identical, Prefix, Suffix
from appliance.link.model.replicas import Replica, discover, lanes_by_task, lanes_of, too_small

NAMING = Naming("replicator-orange", Suffix(after=".copy"), re.compile("orders.*|x+"), re.compile("orders-secret"))


def topic(name: str, partitions: int = 2, error: ErrorCode = ErrorCode.none, internal: bool = False) -> Topic:
    return Topic(name, uuid.uuid5(uuid.NAMESPACE_DNS, name), internal, (1,) * partitions, error)


def cluster(*topics: Topic) -> Metadata:
    return Metadata("id", 1, {}, {topic.name: topic for topic in topics})


def test_each_partition_goes_to_the_partition_of_its_number() -> None:
    found = discover(cluster(topic("orders", 3), topic("other")), cluster(topic("orders.copy", 3)), NAMING)
    assert [(r.source_topic, r.partition, r.destination_topic) for r in found.replicas] == [
        ("orders", 0, "orders.copy"),
        ("orders", 1, "orders.copy"),
        ("orders", 2, "orders.copy"),
    ]
    assert found.replicas[0].source_id == topic("orders").id
    assert found.replicas[0].destination_id == topic("orders.copy").id
    assert not found.missing
    assert not found.unfit


def test_a_topic_without_a_copy_is_missing_one() -> None:
    found = discover(cluster(topic("orders")), cluster(), NAMING)
    assert [missing.name for missing in found.missing] == ["orders"]
    assert not found.replicas


def test_a_copy_with_fewer_partitions_is_told_apart_and_none_of_it_is_copied() -> None:
    found = discover(
        cluster(topic("orders", 3), topic("xx")), cluster(topic("orders.copy", 2), topic("xx.copy")), NAMING
    )
    ((source, copy),) = found.smaller
    assert too_small(source, copy) == (
        "destination topic orders.copy has 2 partitions and orders has 3: "
        "give orders.copy 3 partitions, or delete it and it will be made anew"
    )
    assert {replica.source_topic for replica in found.replicas} == {"xx"}


def test_a_copy_with_more_partitions_is_fit() -> None:
    assert len(discover(cluster(topic("xx", 2)), cluster(topic("xx.copy", 5)), NAMING).replicas) == 2


def test_case_485_a_copy_that_would_be_the_topic_of_anothers_dead_letters_is_not_written() -> None:
    # Before, lanes wrote dead letters into the copy of another topic, among its records.
    topics = cluster(topic("orders"), topic("orders.dead-letter"), topic("x.dead-letter"))
    for policy in (Prefix("orange."), Identical()):
        naming = replace(NAMING, policy=policy, dead_letters=True, included=re.compile(".*"))
        found = discover(topics, cluster(), naming)
        assert {each.name for each in found.missing} == {"orders", "x.dead-letter"}
        copy = naming.destination("orders.dead-letter")
        assert found.unfit["orders.dead-letter"].startswith(f"{copy} is the topic of the dead letters of orders, and")
        assert len(discover(topics, cluster(), replace(naming, dead_letters=False)).missing) == 3
        without = replace(naming, excluded=re.compile("orders"))
        assert len(discover(topics, cluster(), without).missing) == 2
    assert len(discover(topics, cluster(), replace(NAMING, dead_letters=True)).unfit) == 0


def test_case_107_a_topic_that_is_named_like_a_replicators_own_is_unfit_where_no_replicator_writes() -> None:
    # Before, it was silently not copied.
    naming = replace(NAMING, included=re.compile(".*"), excluded=re.compile("replicator-b.*"))
    own = topic("replicator-a.offsets"), topic("replicator-a.positions"), topic("replicator-b.offsets")
    registry = topic("replicator-registry")
    assert set(discover(cluster(*own), cluster(), naming).unfit) == {"replicator-a.offsets", "replicator-a.positions"}
    assert not discover(cluster(*own, registry), cluster(), naming).unfit
    assert set(discover(cluster(own[0], registry), cluster(), naming).unfit) == {"replicator-a.offsets"}
    assert not discover(cluster(*own), cluster(), NAMING).unfit


def test_case_160_what_failbacks_of_the_link_have_made_is_neither_copied_nor_unfit() -> None:
    # A regex of all names took the topic of the link's way back for a user's, and was refused.
    naming = replace(NAMING, included=re.compile(".*"), target="grape")
    names = naming.failback.positions_topic, naming.failback.offsets_topic, naming.diverged("T")
    found = discover(cluster(*map(topic, names)), cluster(), naming)
    assert not found.unfit
    assert not found.missing
    assert discover(cluster(topic("replicator-another.T.diverged")), cluster(), naming).unfit


def test_a_name_that_is_too_long_with_the_suffix_is_unfit() -> None:
    found = discover(cluster(topic("x" * 245)), cluster(), NAMING)
    assert "REPLICA_TOPICS_DEST_SUFFIX" in found.unfit["x" * 245]


def test_a_name_that_is_too_long_with_the_prefix_is_unfit() -> None:
    found = discover(cluster(topic("x" * 243)), cluster(), replace(NAMING, policy=Prefix("orange.")))
    assert "shorten SOURCE_CLUSTER_ID" in found.unfit["x" * 243]


def test_a_topic_that_may_not_be_read_or_written_names_the_key() -> None:
    hidden = topic("orders", 0, ErrorCode.topic_authorization_failed)
    assert "SOURCE_API_KEY" in discover(cluster(hidden), cluster(), NAMING).unfit["orders"]
    hidden = topic("orders.copy", 0, ErrorCode.topic_authorization_failed)
    assert "DESTINATION_API_KEY" in discover(cluster(topic("orders")), cluster(hidden), NAMING).unfit["orders"]


def replica(name: str, partition: int) -> Replica:
    return Replica(name, partition, name + ".copy", uuid.UUID(int=1), uuid.UUID(int=2))


def test_the_lane_of_a_partitions_hash_is_fixed_for_ever() -> None:
    # A change here would make the positions of every running link unreadable, because lane i reads only partition i.
    assert [Layout(12).lane_of("orders", n) for n in range(3)] == [2, 3, 4]
    assert [Layout(12).lane_of("payments", n) for n in range(3)] == [6, 7, 8]


def test_a_topics_partitions_are_spread_over_the_lanes() -> None:
    lanes = lanes_of([replica("orders", n) for n in range(24)], Layout(12))
    assert {len(replicas) for replicas in lanes.values()} == {2}
    assert len(lanes) == 12


TASK_OF = [0, 1, 0, 1, 0, 1, 0, 1]


def test_a_lanes_number_alone_decides_its_task_in_a_job_while_topics_come_and_go() -> None:
    lanes = lanes_of([replica("orders", n) for n in range(5)], Layout(5))
    assert [sorted(part) for part in lanes_by_task(lanes, 2, TASK_OF)] == [[0, 2, 4], [1, 3]]
    (more, others) = lanes_by_task(lanes | {7: (replica("payments", 0),)}, 2, TASK_OF)
    assert (more, sorted(others)) == (lanes_by_task(lanes, 2, TASK_OF)[0], [1, 3, 7])


def test_a_task_may_have_no_lane() -> None:
    lanes = lanes_of([replica("orders", 0)], Layout(5))
    (lane,) = lanes
    assert [bool(part) for part in lanes_by_task(lanes, 5, range(5))] == [task == lane for task in range(5)]
    assert lanes_by_task({}, 2, TASK_OF) == ({}, {})
