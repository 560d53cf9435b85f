"""The topics of copies: missing ones are made, and those that are too small grow."""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from appliance.driver.config_follower import ConfigFollower
from appliance.kafka.client.config_filter import FittedTopics
from appliance.kafka.client.configs import POLICY, set_on, try_describe
from appliance.kafka.client.topics import grow_topics, hidden_topics, require_led
from appliance.kafka.protocol.metadata import Topic
from appliance.link.client.retry import retry_while_busy
from appliance.link.handle import Link
from appliance.link.model.replicas import DiscoveredTopics, too_small
from appliance.link.model.topic_configs import BY_HAND, missed, new_copies, own_configs, unknown
from appliance.settings.values import TopicSettings

log = logging.getLogger("appliance.replicator")

_CHANGED = "the state of its copy was changed just now: it is looked at again"

_SHOWN_PATIENCE = 2.0
_PAUSE_MAX = 0.1


@dataclass(slots=True)
class CopyTopics:
    """Makes and grows copies; ``configs`` knows the settings that the destination takes."""

    link: Link
    topics: TopicSettings
    configs: ConfigFollower
    _has_warned: bool = False

    async def update(self, topics: DiscoveredTopics) -> dict[str, str]:
        """Make missing copies, and grow small ones; the reason, by source topic, for those that stay as they are."""
        unfit = await self._make(topics.missing) if topics.missing else {}
        unfit |= await self._grow(topics.smaller) if topics.smaller else {}
        due = *topics.missing, *(topic for topic, _ in topics.smaller)
        changed = {self.link.naming.destination(each.name): len(each.leaders) for each in due if each.name not in unfit}
        await self._until_shown(changed)
        return unfit

    async def _until_shown(self, partitions: Mapping[str, int]) -> None:
        """Wait until this many partitions of each copy have a leader that knows of it, or for two seconds.

        The controller has answered by then, but other brokers lag a moment; without the wait, copying of the topic
        would begin only after the next search.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SHOWN_PATIENCE):
                await retry_while_busy(
                    partial(require_led, self.link.destination, partitions), longest_pause=_PAUSE_MAX
                )

    async def _make(self, missing: Sequence[Topic]) -> dict[str, str]:
        """Make copies; the reason, by source topic, for those that cannot be made or seen."""
        described, undescribed = await try_describe(self.link.source, [topic.name for topic in missing])
        set_at_source = {name: self.topics.configs_to_follow(set_on(configs)) for name, configs in described.items()}
        if described and not any(described.values()) and not self._has_warned:
            self._has_warned = True
            log.warning("the source does not tell the settings of topics: copies get those of the destination")
        at_destination = await self.configs.filter.known_settings()
        new = new_copies(
            [topic for topic in missing if topic.name in described],
            set_at_source,
            self.link.naming,
            self.topics.replication_factor,
            at_destination,
            compacts=self.topics.compacts_new_copies,
        )
        if not self.link.naming.sharing.others_write:
            await self.link.registry.note_configs({each.name: own_configs(each.configs) for each in new})
        active = {self.link.naming.destination(name) for name in await self.link.lanes.still_active(described)}
        answer = await self.configs.filter.make([each for each in new if each.name in active])
        for each in answer.topics:
            log.info("topic made", extra={"fields": {"topic": each.name, "partitions": each.partitions}})
        self._note_left_out(answer, set_at_source, at_destination)
        hidden = await hidden_topics(self.link.destination, answer.there)
        failures = {name: str(error) for name, error in undescribed.items()}
        failures |= {name: _CHANGED for name in described if self.link.naming.destination(name) not in active}
        for topic in missing:
            copy = self.link.naming.destination(topic.name)
            if copy in answer.failures:
                failures[topic.name] = str(answer.failures[copy])
            elif copy in hidden:
                failures[topic.name] = f"DESTINATION_API_KEY may not see topic {copy}: grant it Describe there"
        return failures

    def _note_left_out(
        self,
        answer: FittedTopics,
        set_at_source: Mapping[str, Mapping[str, str]],
        at_destination: Collection[str] | None,
    ) -> None:
        """Note the settings of the sources that new copies have not got."""
        left_out = {}
        new = {topic.name: topic.configs for topic in answer.topics}
        for name, configs in set_at_source.items():
            copy = self.link.naming.destination(name)
            if copy in new:
                left_out[name] = unknown(configs, at_destination) | missed(answer.left_out.get(copy, {}), new[copy])
                if self.link.naming.sharing.others_write and new[copy].get(POLICY) != configs.get(POLICY):
                    left_out[name] |= {POLICY: BY_HAND}
        self.configs.left_out.note(left_out)

    async def _grow(self, smaller: Sequence[tuple[Topic, Topic]]) -> dict[str, str]:
        """Grow the copies that are ours by positions or claims, or that links share with ours; the reason, by source
        topic, for the others.
        """
        ours = await self.claimed()
        if any(copy.id not in ours for _, copy in smaller):
            checkpoints = await self.link.lanes.checkpoints()
            ours |= {position.destination_id for each in checkpoints for position in each.positions.values()}
        active = await self.link.lanes.still_active([topic.name for topic, _ in smaller])
        growing = {copy.name: len(topic.leaders) for topic, copy in smaller if copy.id in ours and topic.name in active}
        failures = await grow_topics(self.link.destination, growing) if growing else {}
        for name, partitions in growing.items():
            if name not in failures:
                log.info("partitions added", extra={"fields": {"topic": name, "partitions": partitions}})
        foreign = {topic.name: too_small(topic, copy) for topic, copy in smaller if copy.id not in ours}
        failed = {topic.name: str(failures[copy.name]) for topic, copy in smaller if copy.name in failures}
        changed = {topic.name: _CHANGED for topic, _ in smaller if topic.name not in active}
        return {**changed, **foreign, **failed}

    async def claimed(self) -> set[uuid.UUID]:
        """Ids of the copies that this link claims, written or not, or that others let it write."""
        await self.link.registry.refresh()
        claims = self.link.registry.ledger.claims.items()
        return {topic_id for (_, topic_id), claim in claims if claim.admits(self.link.naming)}
