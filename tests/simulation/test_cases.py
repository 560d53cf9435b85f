"""Bugs that random histories have found, each as a case."""

from dataclasses import replace

from appliance.commands.resumption import Choice, resume
from appliance.driver.discovery import TopicDiscovery
from appliance.link import handle
from appliance.link.client.registry import Registry
from appliance.link.client.source_rules import SourceRules
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Identical, IdenticalCopies
from appliance.settings.values import OnGap, Start
from tests.simulation.operator_commands import simulated
from tests.simulation.process import settings
from tests.simulation.scenario import Clusters, Link, copied


def test_case_60_a_copy_that_was_claimed_and_not_written_to_yet_is_grown() -> None:
    clusters = Clusters()
    known = settings("orange", OnGap.STOP, Start.EARLIEST, 1)
    naming = Naming.of(known)
    clusters.source.make("orders", 3)
    copy = clusters.destination.make(naming.destination("orders"), 2)
    clusters.destination.make(naming.positions_topic, 1)
    registry = Registry(clusters.at_destination, naming.replicator)
    assert clusters.run(registry.claim({copy.name: copy.id})) == {}
    link = handle.Link(clusters.at_source, clusters.at_destination, naming)
    found = clusters.run(TopicDiscovery(link, known.topics).search())
    assert found.unfit == {}
    assert [replica.partition for replica in found.replicas] == [0, 1, 2]


def test_case_42_a_gap_whose_end_no_leader_tells_keeps_no_other_partition_waiting() -> None:
    # With ON_GAP=record the whole lane waited for a leader of the one partition, which was not even named.
    link = Link(OnGap.RECORD)
    link.source.make("aaa", 1)
    healthy = link.source.make("bbb", 1).logs[0]
    link.process.start(link.replicas())
    link.write(link.source.topics["aaa"].logs[0])
    link.go_on(2)
    link.source.delete("aaa")
    link.source.lead(link.source.make("aaa", 1).logs[0], -1)
    link.process.assign(link.replicas())
    link.write(healthy)
    link.go_on(10)
    assert copied(link, "bbb.copy") == 1
    assert list(link.faults()) == ["aaa-0"]


def test_case_43_a_fenced_lane_that_cannot_find_out_by_whom_says_so() -> None:
    # It was copied by nobody, and nothing said so.
    link = Link()
    log = link.source.make("aaa", 1).logs[0]
    link.process.start(link.replicas())
    link.write(log)
    link.go_on(1)
    link.destination.coordinator.init(link.naming.transactional_id(0))
    link.destination.lead(link.positions.logs[0], -1)
    link.write(log)
    link.go_on(10)
    assert "lane 0" in link.faults()
    link.destination.lead(link.positions.logs[0], 1)
    link.go_on(10)
    assert link.faults() == {}
    assert copied(link, "aaa.copy") == 2


def test_case_44_a_copy_made_anew_just_when_another_partition_of_it_is_taken_in_gets_nothing_at_its_beginning() -> None:
    # What came next of the warm partition went to the beginning of the new topic, and what came before was not in it.
    link = Link()
    topic = link.source.make("aaa", 2)
    replicas = link.replicas()
    link.process.start(replicas[:1])
    link.write(topic.logs[0], 3)
    link.go_on(0.3)
    assert copied(link, "aaa.copy") == 3
    link.destination.delete("aaa.copy")
    link.destination.make("aaa.copy", 2)
    link.go_on(0.01)
    link.process.assign(replicas)
    link.go_on(0.05)
    link.write(topic.logs[0], 2)
    link.go_on(20)
    assert copied(link, "aaa.copy") == 0
    # Once discovery has found the new topic, the partition that was never copied is copied.
    link.write(topic.logs[1])
    link.process.assign(link.replicas())
    link.go_on(20)
    assert copied(link, "aaa.copy", 1) == 1
    assert list(link.faults()) == ["aaa-0"]


def test_case_72_a_loss_before_the_first_record_after_a_resume_is_noticed() -> None:
    # The end of the copy was forgotten when the operator moved the position, and not known again before a record came.
    link = Link()
    log = link.source.make("aaa", 1).logs[0]
    link.process.start(link.replicas())
    link.write(log, 3)
    link.go_on(1)
    with simulated(link.source, link.destination, link.fates):
        assert link.run(resume(link.settings, Choice("aaa", 0, "latest"), lambda _: None)) == 1
    copy = link.destination.topics["aaa.copy"].logs[0]
    copy.truncate(0)
    link.destination.lead(copy, copy.leader)
    link.write(log)
    link.go_on(20)
    assert "has lost what it had acknowledged, offsets 0 to 3" in link.faults()["aaa-0"]
    assert not any(entry.outcome for entry in copy.entries)


def test_with_identical_names_compacted_topics_and_copies_without_producer_ids_are_not_copied() -> None:
    clusters, own = Clusters(), Naming.of(settings("orange", OnGap.STOP, Start.EARLIEST, 1))
    identical = replace(own, policy=Identical(), sharing=IdenticalCopies())
    copy = clusters.source.make("copy", 1)
    clusters.source.make("compacted", 1, {"cleanup.policy": "compact"})
    clusters.source.make("plain", 1)
    clusters.run(Registry(clusters.at_source, "replicator-lemon").claim({"copy": copy.id}))
    rules = SourceRules(clusters.at_source, clusters.at_destination, identical, one_writer=False)

    async def unfit() -> dict[str, str]:
        return await rules.unfit((await clusters.at_source.metadata(None)).topics)

    found = clusters.run(unfit())
    assert found.keys() == {"copy", "compacted"}
    assert "does not leave its producer ids" in found["copy"]
    assert "REPLICA_ONE_WRITER_PER_KEY=yes" in found["compacted"]
