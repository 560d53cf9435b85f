"""Topics at a destination that does not know some settings, or whose policy refuses them.

A proxy before the real broker refuses; accepted topics are created by the broker.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from appliance.doctor.step import Verdict
from appliance.driver.config_follower import ConfigFollower
from appliance.driver.discovery import TopicDiscovery
from appliance.errors import BrokerRefused
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.link.handle import Link
from appliance.link.model.topic_configs import positions_topic
from appliance.settings.target import Target
from tests.support.administration import configuration, configure
from tests.support.doctor import assert_breaks_at, diagnosis, finding
from tests.support.engine import Engine, Pair
from tests.support.patience import PATIENCE
from tests.support.rewriting import (
    Api,
    Policy,
    Rewrite,
    Rewritten,
    Seeming,
    altering,
    creating,
    forbidding,
    naming,
    seeming_broker,
    telling,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOTHING: Mapping[Api, Rewrite] = {}
CLOUD = "Config property 'segment.bytes' must be at least 52428800"
BEFORE, AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
DIFFERENCE = "message.timestamp.difference.max.ms"


def small_segments(_: str, settings: Mapping[str, str | None]) -> str:
    """A policy like that of a cloud's cluster."""
    return CLOUD if 0 < int(settings.get("segment.bytes") or 0) < 50 * 1024 * 1024 else ""


def refusing(*refused: str) -> Policy:
    return lambda _, settings: "; ".join(f"{key} may not be set" for key in refused if key in settings)


class Questions:
    """A policy that counts the CreateTopics that pass."""

    def __init__(self, rewrite: Rewrite) -> None:
        self._rewrite = rewrite
        self.count = 0

    def __call__(self, request: Any) -> Rewritten:
        self.count += 1
        return self._rewrite(request)


def with_policy(policy: Policy) -> dict[Api, Rewrite]:
    return {Api.CREATE_TOPICS: creating(policy), Api.INCREMENTAL_ALTER_CONFIGS: altering(policy)}


@contextlib.asynccontextmanager
async def between(
    pair: Pair, source: Mapping[Api, Rewrite] = NOTHING, destination: Mapping[Api, Rewrite] = NOTHING
) -> AsyncIterator[Engine]:
    """An engine between rewriting proxies before the brokers."""
    async with (
        seeming_broker(pair.orange.home_targets[0], Seeming(source)) as source_at,
        seeming_broker(pair.grape.home_targets[0], Seeming(destination)) as destination_at,
        pair.engine(source_at, destination_at) as engine,
    ):
        yield engine


def discovery(engine: Engine, replication_factor: int = 1) -> TopicDiscovery:
    naming = engine.pair.naming
    topics = replace(engine.discovery().topics, replication_factor=replication_factor)
    return TopicDiscovery(Link(engine.source, engine.destination, naming, topics.replication_factor), topics)


def said(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    lines = [record for record in caplog.records if record.getMessage() == "settings left out"]
    return [vars(line)["fields"] for line in lines]


async def test_settings_that_the_destination_does_not_know_are_left_out_and_said_once(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    topic = pair.topic("unknown", **{"retention.ms": "7200000"})
    foreign = {"confluent.tier.enable": "true", "redpanda.remote.read": "true"}
    async with between(pair, {Api.DESCRIBE_CONFIGS: telling(foreign)}) as engine:
        pair.make_copy(f"any-{pair.tag}", 1)
        watching = discovery(engine)
        found = await watching.search()
        for _ in range(6):
            assert (await watching.search()).left_out == found.left_out
    assert found.left_out == {topic: ("confluent.tier.enable", "redpanda.remote.read")}
    (line,) = said(caplog)
    assert line["topic"] == pair.copy_of(topic)
    assert line["cause"] == "confluent.tier.enable: not known there; redpanda.remote.read: not known there"
    assert configuration(pair.grape, pair.copy_of(topic))["retention.ms"] == "7200000"


@pytest.mark.parametrize("describing", [True, False], ids=["told", "not-told"])
async def test_record_times_are_kept_by_the_word_that_brokers_before_3_6_know(
    pair: Pair, caplog: pytest.LogCaptureFixture, describing: bool
) -> None:
    topic = pair.topic("old", 2)
    create = _in_new_words(creating(refusing(BEFORE, AFTER)))
    told = naming({BEFORE: DIFFERENCE, AFTER: ""}) if describing else forbidding
    async with between(pair, destination={Api.CREATE_TOPICS: create, Api.DESCRIBE_CONFIGS: told}) as engine:
        pair.make_copy(f"any-{pair.tag}", 1)
        found = await discovery(engine).search()
    assert (found.left_out, said(caplog)) == ({}, [])
    assert configuration(pair.grape, pair.copy_of(topic))[BEFORE] == str(2**63 - 1)


def _in_new_words(rewrite: Rewrite) -> Rewrite:
    """The real broker no longer knows the old name, so it gets a new one instead."""

    def renamed(topic: Any) -> Any:
        configs = (replace(one, name=BEFORE if one.name == DIFFERENCE else one.name) for one in topic.configs)
        return replace(topic, configs=tuple(configs))

    def rewritten(request: Any) -> Rewritten:
        going, finish = rewrite(request)
        return replace(going, topics=tuple(map(renamed, going.topics))), finish

    return rewritten


async def test_settings_that_a_policy_refuses_are_left_out_and_a_thousand_topics_cost_one_search(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"segment.bytes": "1048576", "retention.ms": "7200000"}
    topics = [pair.topic(f"policy{number}", **settings) for number in range(8)]
    questions = Questions(creating(small_segments))
    rewrites = with_policy(small_segments) | {Api.CREATE_TOPICS: questions}
    async with between(pair, destination=rewrites) as engine:
        watching = discovery(engine)
        found = await watching.search()
        assert questions.count <= 3 + 5 + 2  # all together, without settings, one by one, the others again, and finally
        asked = questions.count
        more = pair.topic("policy-more", **settings)
        found = await watching.search()
        assert questions.count == asked + 2
    assert found.left_out == dict.fromkeys([*topics, more], ("segment.bytes",))
    assert {replica.source_topic for replica in found.replicas} == {*topics, more}
    first, second = said(caplog)
    assert (first["topics"], second["topic"]) == (8, pair.copy_of(more))
    assert first["cause"] == f"segment.bytes: {CLOUD}"
    for topic in topics:
        held = configuration(pair.grape, pair.copy_of(topic))
        assert held["retention.ms"] == "7200000"
        assert "segment.bytes" not in held


async def test_a_refused_change_does_not_keep_the_others_from_being_followed(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    topic = pair.topic("changing", **{"retention.ms": "7200000"})
    async with between(pair, destination=with_policy(small_segments)) as engine:
        watching = discovery(engine)
        await watching.search()
        configure(pair.orange, topic, **{"retention.ms": "3600000", "segment.bytes": "1048576"})
        async with asyncio.timeout(PATIENCE):
            while not (found := await watching.search()).left_out:
                pass
    assert found.left_out == {topic: ("segment.bytes",)}
    held = configuration(pair.grape, pair.copy_of(topic))
    assert held["retention.ms"] == "3600000"
    assert "segment.bytes" not in held
    (line,) = said(caplog)
    assert line["cause"] == f"segment.bytes: {CLOUD}"


async def test_a_copy_follows_only_what_is_not_excluded_and_nothing_when_it_is_switched_off(pair: Pair) -> None:
    topic = pair.topic("chosen", **{"retention.ms": "7200000"})
    copy = pair.copy_of(topic)
    async with pair.engine() as engine:
        await engine.discovery().search()
        configure(pair.orange, topic, **{"retention.ms": "3600000", "segment.bytes": "1048576"})
        topics = replace(engine.discovery().topics, configs_exclude_regex="segment[.]bytes")
        switched_off = replace(topics, follows_configs=False)
        await TopicDiscovery(Link(engine.source, engine.destination, pair.naming), switched_off).search()
        assert configuration(pair.grape, copy)["retention.ms"] == "7200000"
        link = Link(engine.source, engine.destination, pair.naming)
        follower = ConfigFollower(link, topics)
        await link.registry.refresh()
        assert (await follower.diff([topic], ())).changes == {copy: {"retention.ms": "3600000"}}
        assert configuration(pair.grape, copy)["retention.ms"] == "7200000"
        await follower.follow([topic], ())
        await until_configured(pair, copy, "retention.ms", "3600000")
    assert "segment.bytes" not in configuration(pair.grape, copy)


async def until_configured(pair: Pair, topic: str, key: str, value: str) -> None:
    """Wait until a broker reports the changed settings."""
    async with asyncio.timeout(PATIENCE):
        while configuration(pair.grape, topic).get(key) != value:
            await asyncio.sleep(0.05)


async def test_the_positions_topic_is_made_without_what_a_policy_refuses(pair: Pair) -> None:
    topic = positions_topic(pair.naming, 2, 1)
    async with between(pair, destination=with_policy(small_segments)) as engine:
        made = await ConfigFilter(engine.destination).make([topic])
    assert made.left_out == {topic.name: {"segment.bytes": CLOUD}}
    held = configuration(pair.grape, topic.name)
    assert (held["cleanup.policy"], held["delete.retention.ms"]) == ("compact", "60000")
    assert "segment.bytes" not in held


async def test_a_positions_topic_that_may_not_be_compacted_is_not_made_and_the_remedy_is_named(pair: Pair) -> None:
    topic = positions_topic(pair.naming, 2, 1)
    async with between(pair, destination=with_policy(refusing("cleanup.policy"))) as engine:
        made = await ConfigFilter(engine.destination).make([topic])
        assert topic.name not in (await engine.destination.metadata(None)).topics
    error = made.failures[topic.name]
    assert isinstance(error, BrokerRefused)
    assert "cleanup.policy may not be set" in str(error)
    assert "make it by hand so" in str(error)
    assert "cleanup.policy=compact" in str(error)


async def test_a_topic_that_is_refused_by_its_name_keeps_no_other_from_being_made(pair: Pair) -> None:
    bad, good = pair.topic("bad", **{"retention.ms": "7200000"}), pair.topic("good", **{"retention.ms": "7200000"})

    def policy(name: str, _: Mapping[str, str | None]) -> str:
        return "such names are not allowed" if name.startswith("bad") else ""

    async with between(pair, destination=with_policy(policy)) as engine:
        found = await discovery(engine).search()
    assert "such names are not allowed" in found.unfit[bad]
    assert [replica.source_topic for replica in found.replicas] == [good]
    assert configuration(pair.grape, pair.copy_of(good))["retention.ms"] == "7200000"


async def test_records_are_copied_to_a_destination_with_a_policy(pair: Pair) -> None:
    topic = pair.filled("copied", 20, **{"segment.bytes": "1048576"})
    async with between(pair, destination=with_policy(small_segments)) as engine:
        await engine.copy_all()
    assert len(pair.compare(topic)[0]) == 20


async def test_the_doctor_asks_with_what_the_replicator_will_ask_with(pair: Pair, tmp_path: Path) -> None:
    pair.topic("doctored", **{"segment.bytes": "1048576", "retention.ms": "7200000"})
    at_source = {Api.DESCRIBE_CONFIGS: telling({"confluent.tier.enable": "true"})}
    async with (
        seeming_broker(pair.orange.home_targets[0], Seeming(at_source)) as source_at,
        seeming_broker(pair.grape.home_targets[0], Seeming(with_policy(small_segments))) as destination_at,
    ):
        pair.make_copy(f"any-{pair.tag}", 1)
        report = await diagnosis(tmp_path, directly(pair, source_at, destination_at))
    found = finding(report, "destination: create")
    assert found.verdict is Verdict.PASSED
    left_out = f"confluent.tier.enable: not known there; segment.bytes: {CLOUD}"
    assert found.detail.endswith(f"left out is what the destination does not take: {left_out}")


async def test_the_doctor_sees_that_the_positions_topic_may_not_be_compacted(pair: Pair, tmp_path: Path) -> None:
    pair.topic("doctored")
    async with (
        seeming_broker(pair.orange.home_targets[0], Seeming()) as source_at,
        seeming_broker(pair.grape.home_targets[0], Seeming(with_policy(refusing("cleanup.policy")))) as destination_at,
    ):
        report = await diagnosis(tmp_path, directly(pair, source_at, destination_at))
    assert_breaks_at(report, "destination: create", "it has to have cleanup.policy=compact", "by hand")


def directly(pair: Pair, source: Target, destination: Target) -> dict[str, str]:
    """Settings for a link of clusters without a tunnel between them."""
    return {
        "SOURCE_ROUTE": "direct",
        "SOURCE_CLUSTER_ID": pair.tag,
        "SOURCE_BROKER_SERVERS": str(source),
        "SOURCE_SECURITY_PROTOCOL": "PLAINTEXT",
        "DESTINATION_CLUSTER_ID": "grape",
        "DESTINATION_BROKER_SERVERS": str(destination),
        "DESTINATION_SECURITY_PROTOCOL": "PLAINTEXT",
        "REPLICA_TOPICS_SOURCE_REGEX": pair.naming.included.pattern,
        "REPLICA_TOPICS_DEST_SUFFIX": "copy",
        "REPLICATION_FACTOR": "1",
    }
