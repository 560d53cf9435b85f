import re
import uuid
from dataclasses import replace

import pytest

from appliance.kafka.protocol.metadata import NOWHERE, Partition, Topic
from appliance.link.model.checkpoint import LaneCheckpoint, LinkRecord, Owner
from appliance.link.model.layout import Layout
from appliance.link.model.link_check import PositionsTopic, link_fault, producers_fault
from appliance.link.model.naming import PRODUCERS, Naming
from appliance.link.model.naming_policies import IdenticalCopies, Map, Prefix, Suffix
from appliance.link.model.position import Position

LINK = LinkRecord("orange", 4, 4, 1)
POSITION = Position(uuid.UUID(int=1), uuid.UUID(int=2), 10, 0)
PARTITIONS = [Partition("orders", number) for number in range(8)]
COPY = "orders.copy", POSITION.destination_id
NAMING = Naming("replicator-orange", Suffix(after=".copy"), re.compile(".*"), re.compile(""), target="grape")


def topic(
    partitions: int = 4, lanes: int = 4, link: LinkRecord | None = LINK, policy: str = "compact"
) -> PositionsTopic:
    """Positions of eight partitions, written by this number of lanes."""
    checkpoints = [LaneCheckpoint() for _ in range(partitions)]
    for key in PARTITIONS:
        checkpoints[Layout(lanes).lane_of(*key)].positions[key] = POSITION
    checkpoints[0].link = link
    return PositionsTopic("positions", policy, checkpoints)


def test_a_link_that_is_as_it_was_made_goes_on() -> None:
    assert link_fault(topic(), "orange", [COPY], NAMING) == ""


def test_a_link_that_nobody_has_made_yet_goes_on() -> None:
    assert (
        link_fault(PositionsTopic("positions", "compact", [LaneCheckpoint(), LaneCheckpoint()]), "orange", [], NAMING)
        == ""
    )


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_positions_that_retention_may_delete_are_refused(policy: str) -> None:  # invariant H
    assert f"cleanup.policy={policy}" in link_fault(topic(policy=policy), "orange", [], NAMING)


def test_a_topic_that_remembers_nothing_of_copies_that_are_there_is_refused() -> None:  # invariant H
    empty = PositionsTopic("positions", "compact", [LaneCheckpoint(owner=Owner("run", "worker", "host", 1))])
    assert "1 copies of this link are there, orders.copy" in link_fault(empty, "orange", [COPY], NAMING)


def test_a_topic_of_another_size_is_refused() -> None:  # invariant H
    assert "has 5 partitions, and had 4" in link_fault(topic(partitions=5), "orange", [], NAMING)


def test_another_source_cluster_is_refused_unless_one_of_them_has_no_id() -> None:  # invariant I
    assert "made with source cluster orange; SOURCE_BROKER_SERVERS lead to plum" in link_fault(
        topic(), "plum", [], NAMING
    )
    assert link_fault(topic(), "", [], NAMING) == ""
    assert link_fault(topic(link=LinkRecord("", 4, 4, 1)), "plum", [], NAMING) == ""


def test_a_position_in_another_lanes_partition_is_refused() -> None:  # invariant H
    misplaced = topic()
    misplaced.checkpoints[Layout(4).lane_of("orders", 3) - 1].positions[Partition("orders", 3)] = POSITION
    assert "holds the position of orders-3, which belongs into partition" in link_fault(misplaced, "orange", [], NAMING)


@pytest.mark.parametrize("lanes", [1, 2, 3, 4])
def test_of_an_older_link_as_many_lanes_are_found_as_put_every_position_in_its_place(lanes: int) -> None:
    older = topic(partitions=4, lanes=lanes, link=None)
    assert older.lanes == lanes
    assert link_fault(older, "orange", [], NAMING) == ""


def test_a_run_comes_after_all_that_have_left_their_names() -> None:
    assert topic().generation == 1
    named = topic()
    named.checkpoints[2].owner = Owner("run", "worker", "host", 1, generation=7)
    assert named.generation == 8


@pytest.mark.parametrize(
    ("changed", "now"),
    [
        (replace(NAMING, policy=Suffix(after=".mirror")), "would now be orders.mirror"),
        (replace(NAMING, policy=Suffix(after="-copy")), "would now be orders-copy"),
        (replace(NAMING, policy=Prefix("orange.")), "would now be orange.orders"),
        (replace(NAMING, policy=Map(names={"orders": "else", "payments": "payments.copy"})), "would now be else"),
        (
            replace(NAMING, policy=Map(names={"payments": "payments.copy"})),
            "orders is no topic of REPLICA_TOPICS_NAMES any more",
        ),
    ],
)
def test_a_link_whose_copies_would_get_other_names_is_refused(changed: Naming, now: str) -> None:  # invariant I
    fault = link_fault(topic(), "orange", [COPY], changed)
    assert fault.startswith(f"the copy of orders is called orders.copy in this link, and {now}: ")
    assert "REPLICA_TOPICS_NAMING" in fault


def test_names_of_copies_that_are_gone_or_were_chosen_anew_for_another_topic_are_not_held_against_a_link() -> None:
    changed, later = replace(NAMING, policy=Suffix(after=".mirror")), ("payments.mirror", uuid.UUID(int=3))
    assert link_fault(topic(), "orange", [], changed) == ""
    both = topic()
    both.checkpoints[Layout(4).lane_of("payments", 0)].positions["payments", 0] = replace(
        POSITION, destination_id=later[1]
    )
    assert link_fault(both, "orange", [COPY, later], changed) == ""


def test_where_topics_have_no_ids_names_of_copies_are_not_compared() -> None:
    nameless = topic()
    for checkpoint in nameless.checkpoints:
        for key in checkpoint.positions:
            checkpoint.positions[key] = replace(POSITION, destination_id=NOWHERE)
    copies = [("orders.copy", NOWHERE), ("payments.copy", NOWHERE)]
    assert link_fault(nameless, "orange", copies, replace(NAMING, policy=Suffix(after=".mirror"))) == ""


def test_a_link_that_must_know_who_wrote_at_the_source_is_refused_without_the_topic_of_producers_that_it_knows() -> (
    None
):
    identical, topic = replace(NAMING, sharing=IdenticalCopies()), Topic(PRODUCERS, uuid.UUID(int=5), False, (0,))
    known = replace(LINK, producers=topic.id.hex)
    assert "was made anew, and the link knew another one" in producers_fault(
        replace(known, producers=uuid.UUID(int=6).hex), topic, identical
    )
    assert "and the link was made with another naming" in producers_fault(LINK, topic, identical)
    assert "is missing" in producers_fault(known, None, identical)
    assert not producers_fault(known, topic, identical)
    assert not producers_fault(known, None, NAMING)
