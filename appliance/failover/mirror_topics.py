"""MirrorMaker 2's topics at the destination: made when they are missing, and appended to."""

from collections.abc import Sequence
from dataclasses import dataclass

from appliance.errors import ApplianceError
from appliance.kafka.client.append import append
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import Metadata
from appliance.kafka.records.records import Record
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.topic_configs import mirror_topic

_PAUSE_MAX = 0.5


@dataclass(slots=True)
class MirrorTopics:
    """Topics of one partition each, by their names."""

    cluster: Cluster
    names: Sequence[str]
    replication_factor: int = -1
    _metadata: Metadata | None = None

    async def append(self, topic: str, records: Sequence[Record]) -> None:
        """Append the records to one of the topics; after a failure they may be there, and are to be appended again.

        Raises:
            ApplianceError: the destination does not take them.
        """
        await retry_while_busy(lambda: self._append(topic, records), longest_pause=_PAUSE_MAX)

    async def _append(self, topic: str, records: Sequence[Record]) -> None:
        """Append once; a topic that was made a moment ago has no leader that knows it yet."""
        try:
            self._metadata = self._metadata or await self._made()
            await append(self.cluster, self._metadata, (topic, 0), records)
        except ApplianceError:
            self._metadata = None
            raise

    async def _made(self) -> Metadata:
        found = await self.cluster.metadata(self.names)
        missing = [mirror_topic(name, self.replication_factor) for name in self.names if name not in found.topics]
        if missing:
            for error in (await ConfigFilter(self.cluster).make(missing)).failures.values():
                raise error
            found = await self.cluster.metadata(self.names)
        for name, topic in found.topics.items():
            check(topic.error, f"write {name}: grant DESTINATION_API_KEY Describe and Write on it")
        return found
