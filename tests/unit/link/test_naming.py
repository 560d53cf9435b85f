import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import NamingPolicy, Prefix, Suffix
from appliance.settings.parse import parse
from appliance.settings.role import Role
from tests.support.settings import REQUIRED

COPY = Suffix(after=".copy")
DASHED = Prefix("orange-", target="grape", separator="-")
SUFFIX = Naming("replicator-orange", Suffix(after=".copy"), re.compile("orders.*|x+"), re.compile("orders-secret"))
ALL = re.compile(".*")
PREFIX = Naming("replicator-orange", Prefix("orange.", target="grape"), ALL, re.compile(""), target="grape")


def prefixed(source: str, target: str) -> Naming:
    return replace(PREFIX, replicator=f"replicator-{source}", policy=Prefix(f"{source}.", target=target), target=target)


def named(**variables: str) -> Naming:
    regex = "orders" if variables.get("REPLICA_TOPICS_NAMING") == "exact" else ".*"
    return Naming.of(parse({**REQUIRED, "REPLICA_TOPICS_SOURCE_REGEX": regex, **variables}, Role.REPLICATOR))


def test_an_exact_link_copies_the_one_topic_whose_name_it_was_given() -> None:
    exact = named(REPLICA_TOPICS_NAMING="exact", REPLICA_TOPICS_SOURCE_REGEX="a.b", REPLICA_TOPICS_DEST_NAME="c")
    assert [name for name in ("a.b", "axb", "a.b.c", "c") if exact.copies(name, internal=False)] == ["a.b"]


def test_a_map_copies_its_topics_alone_and_knows_the_sources_of_their_copies() -> None:
    mapped = named(REPLICA_TOPICS_NAMING="map", REPLICA_TOPICS_NAMES="a.b=c,orders=c.dead-letter")
    assert [name for name in ("a.b", "axb", "c", "orders") if mapped.copies(name, internal=False)] == ["a.b", "orders"]
    assert [mapped.policy.source_of(copy) for copy in ("c", "c.dead-letter", "a.b")] == ["a.b", "orders", None]
    assert mapped.destination("gone") == "gone (not in REPLICA_TOPICS_NAMES)"
    letters = replace(mapped, dead_letters=True)
    assert letters.meets_dead_letters_of("orders", {"a.b", "orders"}) == "a.b"
    assert letters.meets_dead_letters_of("a.b", {"a.b", "orders"}) == ""


@pytest.mark.parametrize(
    ("variables", "topics"),
    [
        ({"REPLICA_TOPICS_NAMING": "map", "REPLICA_TOPICS_NAMES": "a=b"}, ["a"]),
        ({"REPLICA_TOPICS_NAMING": "map", "REPLICA_TOPICS_NAMES": "a=b", "REPLICA_TOPICS_SOURCE_REGEX": ".*"}, ["a"]),
        ({"REPLICA_TOPICS_NAMING": "map", "REPLICA_TOPICS_SOURCE_REGEX": ".*"}, []),
    ],
)
def test_case_1113_the_source_vm_knows_the_topics_of_a_map_by_its_names_alone(
    variables: dict[str, str], topics: list[str]
) -> None:
    # It looked for a regex's, of which a map needs none.
    naming = Naming.of(parse({**REQUIRED, "REPLICA_TOPICS_SOURCE_REGEX": "", **variables}, Role.SOURCE))
    assert [name for name in ("a", "c") if naming.copies(name, internal=False)] == topics
    assert bool(naming.included.pattern) is bool(topics)


@pytest.mark.parametrize(
    ("variables", "choice"),
    [
        ({}, "REPLICA_TOPICS_SOURCE_REGEX=.*"),
        ({"REPLICA_TOPICS_NAMING": "exact", "REPLICA_TOPICS_DEST_NAME": "c"}, "REPLICA_TOPICS_SOURCE_REGEX=orders"),
        ({"REPLICA_TOPICS_NAMING": "map", "REPLICA_TOPICS_NAMES": "a=b"}, "REPLICA_TOPICS_NAMES"),
    ],
)
def test_case_1114_the_setting_that_chooses_the_topics_is_that_of_their_naming(
    variables: dict[str, str], choice: str
) -> None:
    # Messages told to correct REPLICA_TOPICS_SOURCE_REGEX, which a map does without.
    naming = named(**variables)
    assert (naming.choice, naming.policy.chosen_by) == (choice, choice.partition("=")[0])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("orders", ""),
        ("__transaction_state", "Kafka's own topic"),
        ("__amazon_msk_canary", "REPLICA_TOPICS_INTERNAL_REGEX matches it"),
        ("mm2-offset-syncs.lime.internal", "REPLICA_TOPICS_INTERNAL_REGEX matches it"),
        ("lime.checkpoints.internal", "REPLICA_TOPICS_INTERNAL_REGEX matches it"),
        ("connect-offsets-internal", "REPLICA_TOPICS_INTERNAL_REGEX matches it"),
        ("orders.replica", "REPLICA_TOPICS_INTERNAL_REGEX matches it"),
        ("heartbeats", "REPLICA_TOPICS_INTERNAL_REGEX matches it"),
        ("device.heartbeats", ""),
        ("replicator-lime.positions", "a topic in which a replicator keeps its state"),
        ("orders.copy", "a copy from grape"),
        ("secret", "REPLICA_TOPICS_EXCLUDE_REGEX matches it"),
    ],
)
def test_what_a_regex_for_everything_leaves_out_has_a_reason(name: str, reason: str) -> None:
    everything = named(REPLICA_TOPICS_EXCLUDE_REGEX="secret")
    internal = name == "__transaction_state"
    assert everything.left_out(name, internal) == reason
    assert everything.copies(name, internal) is (not reason)


def test_internal_topics_of_other_programs_are_copied_on_request() -> None:
    everything = named(REPLICA_TOPICS_INTERNAL_REGEX="(?!)")
    assert everything.copies("orders.internal", internal=False)
    assert everything.copies("heartbeats", internal=False)


def test_a_topic_that_no_regex_matches_has_no_reason_to_be_left_out() -> None:
    assert SUFFIX.left_out("invoices", internal=False) == SUFFIX.left_out("__consumer_offsets", internal=True) == ""


@pytest.mark.parametrize(
    ("name", "copied"),
    [
        ("orders", True),
        ("orders-eu", True),
        ("my-orders", False),
        ("orders-secret", False),
        ("orders.copy", False),
        ("replicator-lime.positions", False),
    ],
)
def test_a_topic_is_copied_if_the_whole_name_matches_and_it_is_nobodys_copy(name: str, copied: bool) -> None:
    assert SUFFIX.copies(name, internal=False) is copied


@pytest.mark.parametrize("naming", [replace(SUFFIX, included=ALL), PREFIX])
def test_kafkas_own_topics_and_replicators_are_never_copied(naming: Naming) -> None:
    assert not naming.copies("__consumer_offsets", internal=True)
    assert not naming.copies("replicator-lime.positions", internal=False)
    assert not naming.copies("replicator-registry", internal=False)
    assert naming.copies("anything", internal=False)


@pytest.mark.parametrize("name", ["lime.checkpoints.internal", "mm2-offset-syncs.lime.internal"])
def test_by_prefix_what_mirror_maker_remembers_is_not_copied(name: str) -> None:
    assert not PREFIX.copies(name, internal=False)
    assert replace(PREFIX, policy=DASHED, separator="-").copies(name, internal=False)
    assert replace(PREFIX, policy=COPY).copies(name, internal=False)


@pytest.mark.parametrize(
    ("variables", "copy"),
    [
        ({}, "orders.copy"),
        ({"REPLICA_TOPICS_SEPARATOR": "__"}, "orders__copy"),
        ({"REPLICA_TOPICS_NAMING": "prefix"}, "orange.orders"),
        ({"REPLICA_TOPICS_NAMING": "Prefix", "REPLICA_TOPICS_DEST_SUFFIX": ""}, "orange.orders"),
        ({"REPLICA_TOPICS_NAMING": "prefix", "REPLICA_TOPICS_SEPARATOR": "-"}, "orange-orders"),
        ({"REPLICA_TOPICS_NAMING": "global"}, "orders-global"),
        ({"REPLICA_TOPICS_NAMING": "exact", "REPLICA_TOPICS_DEST_NAME": "any_name"}, "any_name"),
        ({"REPLICA_TOPICS_NAMING": "identical"}, "orders"),
        ({"REPLICA_TOPICS_NAMING": "map", "REPLICA_TOPICS_NAMES": "orders=any,x=y"}, "any"),
    ],
)
def test_a_copy_is_called_as_the_settings_say(variables: Mapping[str, str], copy: str) -> None:
    assert named(**variables).destination("orders") == copy


@pytest.mark.parametrize(
    ("name", "copied"),
    [
        ("orders", True),
        ("grape", True),
        ("orders.grape", True),  # the topic's own name ends like this: it is not a cluster's name
        ("lime.orders", True),  # a copy from a third cluster is copied on, as orange.lime.orders
        ("orange.orders", True),
        ("grapefruit.orders", True),
        ("grape.orders", False),  # came from there by the opposite link
        ("lime.grape.orders", False),  # came from there through a third cluster
        ("grape.orders.copy", False),
        ("orders.internal", True),
        ("internal", True),
        ("checkpoints", True),
    ],
)
def test_by_prefix_what_came_from_the_destination_does_not_travel_back(name: str, copied: bool) -> None:
    assert PREFIX.copies(name, internal=False) is copied


def test_by_prefix_another_separator_ends_the_names_of_clusters() -> None:
    dashed = replace(PREFIX, policy=DASHED, separator="-")
    assert dashed.destination("grape.orders") == "orange-grape.orders"
    assert dashed.copies("grape.orders", internal=False)
    assert not dashed.copies("grape-orders", internal=False)


@pytest.mark.parametrize("kind", ["suffix", "global", "prefix"])
def test_two_links_of_one_naming_between_two_clusters_copy_no_copy_back(kind: str) -> None:
    forth = named(REPLICA_TOPICS_NAMING=kind)
    back = named(REPLICA_TOPICS_NAMING=kind, SOURCE_CLUSTER_ID="grape", DESTINATION_CLUSTER_ID="orange")
    assert not back.copies(forth.destination("orders"), internal=False)
    assert not forth.copies(back.destination("orders"), internal=False)


def test_by_prefix_no_record_passes_a_ring_of_three_clusters_twice() -> None:
    links = [
        prefixed(source, target) for source, target in (("orange", "grape"), ("grape", "lime"), ("lime", "orange"))
    ]
    topics = {"orange": {"orders"}, "grape": set[str](), "lime": set[str]()}
    for _ in range(5):
        for link in links:
            topics[link.target] |= {link.destination(name) for name in topics[link.source] if link.copies(name, False)}
    assert topics == {"orange": {"orders"}, "grape": {"orange.orders"}, "lime": {"grape.orange.orders"}}


def test_with_mirror_makers_formats_heartbeats_of_further_clusters_go_on_whatever_the_regex() -> None:
    told = replace(PREFIX, included=re.compile("orders"), mirror_formats=True)
    others = {f"{name}.checkpoints.internal" for name in ("lime", "grape")}
    assert told.copies("lime.heartbeats", False, others)
    assert told.copies("lime.plum.heartbeats", False, others)
    assert told.copies("lime.heartbeats", False, {"replicator-lime.positions"})
    assert not told.copies("heartbeats", False, others)  # the link itself writes those of its own source
    assert not told.copies("grape.heartbeats", False, others)
    assert not replace(told, excluded=re.compile("lime.*")).copies("lime.heartbeats", False, others)
    assert not replace(told, mirror_formats=False).copies("lime.heartbeats", False, others)
    assert not replace(told, policy=COPY).copies("lime.heartbeats", False, others)
    assert replace(PREFIX, mirror_formats=False).copies("heartbeats", internal=False)


@pytest.mark.parametrize("name", ["device.heartbeats", "app.device.heartbeats", "device.lime.heartbeats"])
def test_case_866_a_topic_that_merely_ends_like_heartbeats_is_copied_only_if_the_regex_says_so(name: str) -> None:
    # Every topic that ended in heartbeats was copied, whatever the regex said.
    told = replace(PREFIX, included=re.compile("orders"), mirror_formats=True)
    others = {name, "orders", "heartbeats", "lime.heartbeats", "lime.checkpoints.internal"}
    assert not told.copies(name, False, others)
    assert replace(told, included=re.compile(".*heartbeats")).copies(name, False, others)


def circulated(links: Mapping[tuple[str, str], Naming], topics: Mapping[str, set[str]]) -> Mapping[str, set[str]]:
    """The topics of each cluster when no link makes another copy."""
    while True:
        copies = {
            (target, link.destination(name))
            for (source, target), link in links.items()
            for name in topics[source]
            if link.copies(name, False, topics[source])
        }
        known = {cluster: names | {name for at, name in copies if at == cluster} for cluster, names in topics.items()}
        assert max(len(name) for names in known.values() for name in names) < 100, "the copies grow for ever"
        if known == topics:
            return known
        topics = known


@pytest.mark.parametrize(
    ("suffixes", "separators"), [("ab", ".."), ("ab", ".-"), ("aa", "._"), ("abc", "..."), ("abc", ".-_")]
)
def test_case_867_links_with_suffixes_of_their_own_end_their_circles(suffixes: str, separators: str) -> None:
    # They copied each other's copies on for ever.
    ring = list(zip(range(len(suffixes)), suffixes, separators, strict=True))
    links = {
        (str(n), str((n + 1) % len(ring))): replace(PREFIX, policy=Suffix(after=separator + suffix))
        for n, suffix, separator in ring
    }
    found = circulated(links, {source: {f"own{source}", "same"} for source, _ in links})
    assert len(found["0"]) == 2 + 4 * len(ring)


def test_case_867_a_suffix_and_global_names_end_their_circles() -> None:
    links = {
        ("0", "1"): replace(PREFIX, policy=COPY),
        ("1", "0"): replace(PREFIX, policy=NamingPolicy(after="-global")),
    }
    assert circulated(links, {"0": {"x"}, "1": set()}) == {
        "0": {"x", "x.copy-global", "x.copy-global.copy-global"},
        "1": {"x.copy", "x.copy-global.copy"},
    }


def test_a_suffix_and_a_prefix_end_their_circles_after_two_rounds_at_most() -> None:
    links = {
        ("orange", "grape"): replace(PREFIX, policy=COPY),
        ("grape", "orange"): prefixed("grape", "orange"),
    }
    assert circulated(links, {"orange": {"x"}, "grape": {"y"}}) == {
        "orange": {"x", "grape.x.copy", "grape.y", "grape.grape.y.copy"},
        "grape": {"y", "x.copy", "grape.y.copy"},
    }


@pytest.mark.parametrize("others", [set(), {"sales"}, {"sales", "sales.eu"}])
def test_case_891_a_topic_with_the_suffix_in_its_name_is_copied_whatever_other_topics_there_are(
    others: set[str],
) -> None:
    # It was left out, or copied again, from the moment on at which somebody made or deleted a topic `sales`.
    link = replace(SUFFIX, included=ALL, policy=Suffix(after=".eu"))
    assert link.copies("sales.eu.orders", False, {"sales.eu.orders", *others})
    assert not link.copies("sales.eu.back.eu.back", False, {"sales.eu.back.eu.back", *others})


@pytest.mark.parametrize("other", ["orange.doctor", "orange.doctor.internal", "orange.doctor.groups"])
def test_case_892_the_doctors_topic_is_no_link_s_own(other: str) -> None:
    # Of a link named `orange.doctor` the doctor of `orange` deleted the older parts of the offset maps.
    doctor, link = SUFFIX.doctors_topic, replace(SUFFIX, replicator=f"replicator-{other}", target="grape")
    failback = link.failback
    own = [
        topic
        for each in (link, failback)
        for topic in (each.offsets_topic, each.positions_topic, each.groups_topic, each.diverged("orders"))
    ]
    assert doctor not in (*own, link.doctors_topic)
    everything = replace(link, included=ALL)
    assert not everything.copies(doctor, internal=False)


@pytest.mark.parametrize(("variables", "separator"), [({}, "."), ({"REPLICA_TOPICS_SEPARATOR": "__"}, "__")])
def test_mirror_makers_topics_are_called_as_its_client_expects(variables: Mapping[str, str], separator: str) -> None:
    naming = named(MM2_FORMATS="yes", **variables)
    assert naming.heartbeats_topic == f"orange{separator}heartbeats"
    assert naming.checkpoints_topic == f"orange{separator}checkpoints{separator}internal"
    assert not naming.copies(naming.checkpoints_topic, internal=False)
