"""The source topics to copy, and the right to read them.

The right is checked by a Fetch of an offset that no log has: nothing is read.
"""

from collections.abc import Collection, Mapping, Sequence

from kio.schema.errors import ErrorCode

from appliance.doctor.step import Finding, failed, passed
from appliance.errors import BrokerRefused
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.configs import configs
from appliance.kafka.client.fetch import FetchLimits, Wanted, fetch
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Topic
from appliance.link.model.naming import Naming
from appliance.listing import some

_BEYOND_ALL_LOGS = 2**62
_ONE_BYTE = 1
_NO_WAIT = FetchLimits(_ONE_BYTE, wait=0.0)
_REFUSED = (
    ErrorCode.topic_authorization_failed,
    ErrorCode.unknown_topic_or_partition,
    ErrorCode.unknown_topic_id,
)


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
        """Find the matching topics, and check that all of them and their settings may be read.

        Raises:
            Unreachable, BrokerRefused, BrokerBusy: as everywhere.
        """
        metadata, naming = await self._cluster.metadata(None), self._naming
        matching = naming.copied(metadata.topics)
        key = _whom(self._cluster)
        if not matching:
            detail = f"of {len(metadata.topics)} topics that {key} may see, none matches"
            regex = f"REPLICA_TOPICS_SOURCE_REGEX={naming.included.pattern}"
            return failed(detail, f"check {regex}, and permit {key} READ and DESCRIBE on the topics")
        self.matching = sorted(matching, key=lambda topic: topic.name)
        refused = await unreadable(self._cluster, metadata, self.matching)
        if refused:
            return failed(f"{len(refused)} of {len(matching)} refused: {some(refused)}", f"permit {key} READ on them")
        names = [topic.name for topic in self.matching]
        try:
            self.configs = await configs(self._cluster, names)
        except BrokerRefused as error:
            return failed(str(error), f"permit {key} DESCRIBE_CONFIGS on the topics: the copies follow them")
        return passed(f"{len(names)} topics: {some(names)}")


async def unreadable(cluster: KafkaCluster, metadata: Metadata, topics: Collection[Topic]) -> list[str]:
    """The topics that the key may not read; unknown for a topic whose first partition has no leader.

    Raises:
        Unreachable, BrokerRefused, BrokerBusy: as everywhere.
    """
    by_leader: dict[int, list[Wanted]] = {}
    for topic in topics:
        leader = metadata.leader(topic.name, 0)
        if leader != NOBODY:
            by_leader.setdefault(leader, []).append(Wanted((topic.name, 0), topic.id, _BEYOND_ALL_LOGS, _ONE_BYTE))
    refused = []
    for leader, wanted in by_leader.items():
        answers = await fetch(await cluster.broker(leader), wanted, _NO_WAIT)
        refused += [answer.partition[0] for answer in answers if answer.error in _REFUSED]
    return sorted(refused)


def _whom(cluster: KafkaCluster) -> str:
    """The principal that needs a permission."""
    return cluster.settings.login or "clients without an API key"
