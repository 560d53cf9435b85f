"""The rights for optional features of a link: the sync of ACLs, and failing back.

Nothing is left behind: ACLs are described, and a nonexistent one is removed. Metadata shows the right to write the
source's topics. The right to a transactional id is tested as in ``appliance.doctor.destination_rights``, but for a
producer that does not exist: the broker checks the rights, and a topic that does not exist, before it looks for the
producer.
"""

from kio.schema.errors import ErrorCode

from appliance.doctor.source_topics import SourceTopics
from appliance.doctor.step import Finding, passed, skipped, warning
from appliance.errors import BrokerRefused
from appliance.kafka.client.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    delete_acls,
    permitted,
    topic_acls,
)
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.topics import NewTopic
from appliance.kafka.client.transactions import Producer, try_partitions
from appliance.link.model.copied_acls import principal_of
from appliance.link.model.naming import Naming
from appliance.link.model.topic_configs import offsets_topic, positions_topic
from appliance.listing import some

_TOPICS_MAX = 1000


class AclRights:
    """The rights for ACLS_SYNC=yes; without them everything except ACLs is copied."""

    def __init__(self, source: KafkaCluster, destination: KafkaCluster, naming: Naming) -> None:
        self._source = source
        self._destination = destination
        self._naming = naming

    async def read(self) -> Finding:
        """Check that the source lists its ACLs.

        Raises:
            Unreachable, BrokerBusy: as everywhere.
        """
        try:
            found = await topic_acls(self._source)
        except BrokerRefused as error:
            return _refused(error)
        return passed(f"{len(found)} ACLs of topics")

    async def write(self) -> Finding:
        """Check that the destination lists its ACLs, and permits changes: a nonexistent one is removed.

        Raises:
            Unreachable, BrokerBusy: as everywhere.
        """
        nobodys = principal_of(self._naming.doctors_id)
        entry = AccessControlEntry(AclPermission.DENY, nobodys, "*", AclOperation.ALTER_CONFIGS)
        binding = AclBinding(self._naming.doctors_id, PatternType.LITERAL, entry)
        try:
            await topic_acls(self._destination)
            failures = await delete_acls(self._destination, [binding])
        except BrokerRefused as error:
            return _refused(error)
        return _refused(failures[binding]) if failures else passed("ACLs of topics may be made and removed")


def _refused(error: Exception) -> Finding:
    return warning(str(error), "grant what it names, or set ACLS_SYNC=no: all else is copied")


class FailbackRights:
    """The rights at the source to fail back; elsewhere the source is only read."""

    def __init__(self, source: KafkaCluster, topics: SourceTopics, naming: Naming) -> None:
        self._source = source
        self._topics = topics
        self._naming = naming.failback

    async def examine(self) -> Finding:
        """Name the rights that are missing; they may be granted later.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused: as everywhere.
        """
        names = [topic.name for topic in self._topics.matching[:_TOPICS_MAX]]
        found = await permitted(self._source, names)
        refused = [name for name in names if AclOperation.WRITE not in found.get(name, {AclOperation.WRITE})]
        lacks = [f"WRITE on {some(refused)}"] if refused else []
        lacks += await self._lacks_for_positions()
        if lacks:
            whom = self._source.settings.login or "SOURCE_API_KEY"
            return skipped(f"only to fail back {whom} lacks: {'; '.join(lacks)}")
        return passed(f"permitted to {some(names)}")

    async def _lacks_for_positions(self) -> list[str]:
        """The rights that are missing for the topics of positions and maps, and for the transactional ids."""
        topics = positions_topic(self._naming, 1, -1), offsets_topic(self._naming, 1, -1)
        names = [topic.name for topic in topics]
        missing = [topic.name for topic in topics if await self._is_not_permitted(topic)]
        lacks = [f"CREATE and READ on topics {some(missing)}"] if missing else []
        asked = [*((name, 0) for name in names), (self._naming.doctors_id, 0)]
        lane = self._naming.transactional_id(0)
        codes = await try_partitions(await self._source.any_broker(), Producer(lane, 0, 0), asked)
        if codes[names[0], 0] is ErrorCode.transactional_id_authorization_failed:
            return [*lacks, f"WRITE on transactional ids that begin with {self._naming.replicator}."]
        refused = [name for name in names if codes[name, 0] is ErrorCode.topic_authorization_failed]
        return [*lacks, f"WRITE on topics {some(refused)}"] if refused else lacks

    async def _is_not_permitted(self, topic: NewTopic) -> bool:
        """True of a topic that is missing, or invisible, and must not be made."""
        known = (await self._source.metadata([topic.name])).topics.get(topic.name)
        if known and known.error is ErrorCode.none:
            return False
        made = await ConfigFilter(self._source).fit([topic])
        error = made.failures.get(topic.name)
        if isinstance(error, BrokerRefused) and error.code.endswith("AUTHORIZATION_FAILED"):
            return True
        if error:
            raise error
        return False
