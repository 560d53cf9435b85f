"""The source topics to copy, and the right to read them.

The right is checked by a Fetch of an offset that no log has: nothing is read.
"""

from collections.abc import Collection, Mapping, Sequence

from kio.schema.errors import ErrorCode

from appliance.doctor.step import Finding, failed, passed, warning
from appliance.errors import BrokerRefused
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.configs import configs
from appliance.kafka.client.fetch import FetchLimits, WantedPartition, fetch
from appliance.kafka.protocol.metadata import NOWHERE, Partition, Topic
from appliance.link.model.naming import Naming
from appliance.listing import some

TOPICS_MAX = 1000
"""Most topics whose copies, and rights to fail back, are checked."""

_BEYOND_ALL_LOGS = 2**62
_ONE_BYTE = 1


class SourceTopics:
    """The topics to copy, known once they are examined.

    ``matching`` is empty while they are unknown; ``configs`` has the settings of each.
    """

    def __init__(self, cluster: KafkaCluster, naming: Naming) -> None:
        self._cluster = cluster
        self._naming = naming
        self.matching: Sequence[Topic] = ()
        self.configs: Mapping[str, Mapping[str, str]] = {}

    async def examine(self) -> Finding:
        """Find the matching topics, and check that all of them and their settings may be read."""
        metadata, naming = await self._cluster.metadata(None), self._naming
        matching = naming.copied(metadata.topics)
        key = whom(self._cluster)
        if not matching:
            detail = f"of {len(metadata.topics):,} topics that {key} may see, none matches"
            return failed(detail, f"check {naming.choice}, and permit {key} READ and DESCRIBE on the topics")
        self.matching = sorted(matching, key=lambda topic: topic.name)
        names = [topic.name for topic in self.matching]
        if refused := await unreadable(self._cluster, names):
            return failed(
                f"{len(refused):,} of {len(matching):,} refused: {some(refused)}", f"permit {key} READ on them"
            )
        try:
            self.configs = await configs(self._cluster, names)
        except BrokerRefused as error:
            return failed(str(error), f"permit {key} DESCRIBE_CONFIGS on the topics: the copies follow them")
        if absent := sorted((naming.policy.topics or set()) - set(names)):
            return warning(f"{len(names):,} topics; not seen, or not copied: {some(absent)}", f"check {naming.choice}")
        return passed(f"{len(names):,} topics: {some(names)}")


async def unreadable(cluster: KafkaCluster, topics: Collection[str]) -> list[str]:
    """The topics, existing or not, that the key may not read: any broker checks that before it looks for a leader."""
    wanted = [WantedPartition(Partition(topic, 0), NOWHERE, _BEYOND_ALL_LOGS, _ONE_BYTE) for topic in topics]
    answers = await fetch(await cluster.any_broker(), wanted, FetchLimits(_ONE_BYTE, wait=0.0))
    return sorted(each.partition.topic for each in answers if each.error is ErrorCode.topic_authorization_failed)


def whom(cluster: KafkaCluster) -> str:
    """The principal that needs a permission."""
    return cluster.settings.login or "clients without an API key"
