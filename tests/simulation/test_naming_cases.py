"""Names of copies by which records would be lost, doubled or travel in circles: cases 1170 to 1181."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from appliance.commands.failback.failback import failback
from appliance.commands.promotion import failover
from appliance.settings.values import OnGap, Settings, Start, TopicNaming
from tests.simulation import scenario
from tests.simulation.log import Log, seen
from tests.simulation.process import Replicator, settings
from tests.simulation.scenario import Link, run_on

Pairs = tuple[tuple[str, str], ...]


def mapped(known: Settings, pairs: Pairs) -> Settings:
    topics = replace(known.topics, naming=TopicNaming.MAP, pairs=pairs)
    return replace(known, topics=topics)


class Mapped(Link):
    """A link with a map of names, whose topics have ten records each, and have been copied."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pairs: Pairs) -> None:
        monkeypatch.setattr(scenario, "settings", lambda *args: mapped(settings(*args), pairs))
        super().__init__()
        self.destination.delete(self.positions.name)
        for topic, _ in pairs:
            log = self.source.make(topic, 1).logs[0]
            for _ in range(10):
                self.write(log)
        self.process.start(None)
        self.go_on(4)

    def at(self, topic: str) -> Log:
        return self.source.topics[topic].logs[0]

    def copy(self, topic: str) -> Log:
        return self.destination.topics[self.naming.destination(topic)].logs[0]

    def values(self, log: Log) -> list[Any]:
        return [record for _, record in seen(log)]


@pytest.mark.parametrize(
    "pairs", [(("aaa", "bbb"),), (("aaa", "aaa"),), (("aaa", "bbb"), ("bbb", "ccc"))], ids=["apart", "same", "chain"]
)
def test_case_1170_a_failback_that_keeps_the_diverged_brings_back_all_whatever_the_names_of_the_copies(
    pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The link in reverse keys what is copied back by the copy's name, and what is kept by the source's: with a map
    # (or REPLICA_TOPICS_NAMING=exact) these may be the same name.
    link = Mapped(monkeypatch, pairs)
    assert all(link.values(link.at(topic)) == link.values(link.copy(topic)) for topic, _ in pairs)
    link.process.kill()
    for topic, _ in pairs:
        link.write(link.at(topic), 3)
    link.source.changed(link.at("aaa"))
    run_on(link, failover)
    for topic, _ in pairs:
        for _ in range(4):
            link.write(link.copy(topic))
        link.destination.changed(link.copy(topic))
    before = {topic: link.values(link.at(topic)) for topic, _ in pairs}
    written = {topic: link.values(link.copy(topic))[10:] for topic, _ in pairs}
    run_on(link, failback, keep_diverged=True)
    for topic, _ in pairs:
        assert link.values(link.at(topic)) == before[topic] + written[topic]


def suffixed(known: Settings) -> Settings:
    return replace(known, topics=replace(known.topics, suffix="positions"))


OWN = {
    "its positions": ("aaa", "replicator-orange.positions", None),
    "the registry": ("aaa", "replicator-registry", None),
    "another link's positions": ("aaa", "replicator-plum.positions", None),
    "another link's positions by a suffix": ("replicator-plum", "replicator-plum.positions", suffixed),
}
"""A source topic, and the topic that is to be its copy; by a map, or by other settings."""


@pytest.mark.parametrize("name", OWN)
def test_case_1171_no_setting_makes_a_topic_in_which_replicators_keep_their_state_a_copy(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The link claimed its own positions topic (or the registry) as a copy, gave it the cleanup.policy of the source
    # topic, told the operator to resume it, and wrote into an empty one.
    topic, own, change = OWN[name]
    changed = change or partial(mapped, pairs=((topic, own),))
    monkeypatch.setattr(scenario, "settings", lambda *args: changed(settings(*args)))
    link = Link()
    if own not in link.destination.topics:
        link.destination.make(own, 1, {"cleanup.policy": "compact"})
    written = link.destination.topics[own].logs[0].end
    log = link.source.make(topic, 1, {"cleanup.policy": "delete"}).logs[0]
    for _ in range(10):
        link.write(log)
    link.process.start(None)
    link.go_on(10)
    assert link.destination.topics[own].configs["cleanup.policy"] == "compact"
    if "plum" in own:
        assert link.destination.topics[own].logs[0].end == written
    assert "keeps its state, and no copy" in str(link.process.of_topics[f"topic {topic}"])


class Exact(Link):
    """A link with an exact name, whose topic ``aaa`` was copied to ``x``; then the settings name ``bbb`` for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def exact(*args: Any) -> Settings:
            known = settings(*args)
            topics = replace(known.topics, naming=TopicNaming.EXACT, regex=self.topic, name="x")
            return replace(known, topics=topics)

        self.topic = "aaa"
        monkeypatch.setattr(scenario, "settings", exact)
        super().__init__()
        self.destination.delete(self.positions.name)
        for topic in ("aaa", "bbb"):
            log = self.source.make(topic, 1).logs[0]
            for _ in range(10):
                self.write(log)
        self.process.start(None)
        self.go_on(4)
        self.process.kill()
        self.topic = "bbb"
        self.settings = exact("orange", OnGap.STOP, Start.EARLIEST, 1)
        self.process = Replicator(2, self.source, self.destination, self.fates, self.settings)
        self.process.start(None)
        self.go_on(4)


def test_case_1173_an_exact_name_is_not_given_to_another_topic_while_the_former_ones_copy_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The start was not refused, the copy took the records of both, and rm-topic of the former topic deleted it.
    link = Exact(monkeypatch)
    assert "aaa is no topic of REPLICA_TOPICS_SOURCE_REGEX=bbb any more" in str(link.process.ended)
    assert len(seen(link.destination.topics["x"].logs[0])) == 10


CIRCLES = {
    "one link of one cluster, a topic to itself": (("aaa", "aaa"),),
    "one link of one cluster, two topics to each other": (("aaa", "bbb"), ("bbb", "aaa")),
}


@pytest.mark.parametrize("name", CIRCLES)
def test_case_1180_records_do_not_travel_in_circles_within_one_cluster(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both sides may lead to one cluster, under other names of its brokers: a map copied its own copies, for ever.
    monkeypatch.setattr(scenario, "settings", lambda *args: mapped(settings(*args), CIRCLES[name]))
    link = Link()
    link.destination.delete(link.positions.name)
    logs = [link.destination.make(topic, 1).logs[0] for topic, _ in CIRCLES[name]]
    link.process = Replicator(1, link.destination, link.destination, link.fates, link.settings)
    link.process.start(None)
    link.go_on(3)
    for _ in range(3):
        link.write(logs[0])
    link.destination.changed(logs[0])
    link.go_on(5)
    assert sum(len(seen(log)) for log in logs) <= 6


@pytest.mark.parametrize("link_name", ["orange", "orange2"])
def test_case_1181_of_two_opposite_maps_the_later_link_is_refused_whatever_the_links_are_called(
    link_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A second link between two clusters has a SOURCE_CLUSTER_ID of its own, as a start with other names wants it: the
    # link back, which looks for replicator-<DESTINATION_CLUSTER_ID> alone, does not know it, and all travels for ever.
    def there(*args: Any) -> Settings:
        return mapped(settings(link_name, *args[1:]), (("aaa", "bbb"),))

    monkeypatch.setattr(scenario, "settings", there)
    link = Link()
    link.destination.delete(link.positions.name)
    link.source.make("replicator-registry", 1, {"cleanup.policy": "compact"})
    log = link.source.make("aaa", 1).logs[0]
    link.process.start(None)
    link.go_on(4)
    known = link.settings
    source, destination = replace(known.source, cluster_id="grape"), replace(known.destination, cluster_id="orange")
    back = replace(mapped(known, (("bbb", "aaa"),)), source=source, destination=destination)
    back = replace(back, replicator="replicator-grape")
    other = Replicator(2, link.destination, link.source, link.fates, back)
    other.start(None)
    link.go_on(4)
    for _ in range(3):
        link.write(log)
    link.source.changed(log)
    link.go_on(5)
    assert "topic bbb" in other.of_topics or other.ended
    assert len(seen(log)) == 3
