"""The rights for optional features of a link: the sync of ACLs and of groups, and failing back.

Nothing is left behind: ACLs are described, and a nonexistent one is removed. An offset is committed for a topic that
does not exist: the broker checks the right to the group first, and writes nothing. Metadata shows the right to write
the source's topics. The right to a transactional id is tested as in ``appliance.doctor.destination_rights``, but for a
producer that does not exist: the broker checks the rights, and a topic that does not exist, before it looks for the
producer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from appliance.doctor.source_topics import TOPICS_MAX, SourceTopics, whom
from appliance.doctor.step import Finding, failed, passed, skipped, warning
from appliance.errors import BrokerRefused, raise_first
from appliance.kafka.client.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    delete_acls,
    permitted_operations,
    topic_acls,
)
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.group_offsets import Commit, commit_offsets
from appliance.kafka.client.groups import Group, list_groups
from appliance.kafka.client.topics import NewTopic
from appliance.kafka.client.transactions import Producer, try_partitions
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.membership import members
from appliance.link.model.copied_acls import principal_of
from appliance.link.model.naming import Naming
from appliance.link.model.standby import Members
from appliance.link.model.topic_configs import offsets_topic, positions_topic
from appliance.listing import some
from appliance.settings.values import Settings
from appliance.status.model.state_words import replicators

_DENIED = "AUTHORIZATION_FAILED"


@dataclass(frozen=True, slots=True)
class AclRights:
    """The rights for ACLS_SYNC=yes; without them everything except ACLs is copied."""

    source: KafkaCluster
    destination: KafkaCluster
    naming: Naming

    async def read(self) -> Finding:
        """Check that the source lists its ACLs."""
        try:
            acls = await topic_acls(self.source)
        except BrokerRefused as error:
            return _refused(error)
        return passed(f"{len(acls):,} ACLs of topics")

    async def write(self) -> Finding:
        """Check that the destination lists its ACLs, and permits changes: a nonexistent one is removed."""
        nobodys = principal_of(self.naming.doctors_id)
        entry = AccessControlEntry(AclPermission.DENY, nobodys, "*", AclOperation.ALTER_CONFIGS)
        binding = AclBinding(self.naming.doctors_id, PatternType.LITERAL, entry)
        try:
            await topic_acls(self.destination)
            failures = await delete_acls(self.destination, [binding])
        except BrokerRefused as error:
            return _refused(error)
        return _refused(failures[binding]) if failures else passed("ACLs of topics may be made and removed")


def _refused(error: Exception) -> Finding:
    return warning(str(error), "grant what it names, or set ACLS_SYNC=no: all else is copied")


class GroupRights:
    """The rights for REPLICA_GROUPS_REGEX, of which ``groups`` are the names that it matches at the source."""

    def __init__(self, source: KafkaCluster, destination: KafkaCluster, settings: Settings) -> None:
        self.groups: list[str] = []
        self._source = source
        self._destination = destination
        self._settings = settings.groups
        self._link, self._standbys = settings.replicator, settings.engine.standbys
        self._nobodys = Naming.of(settings).doctors_id

    async def read(self) -> Finding:
        """Find the matching groups: the source lists those that may be described."""
        listed = await list_groups(self._source)
        raise_first(listed.failures.values())
        self.groups = sorted(filter(self._settings.takes, listed.groups))
        remedy = f"check REPLICA_GROUPS_REGEX={self._settings.regex}, and permit {whom(self._source)} DESCRIBE on them"
        detail = f"{len(self.groups):,} of {len(listed.groups):,} groups that may be seen match: {some(self.groups)}"
        return passed(detail) if self.groups else warning(detail, remedy)

    async def write(self) -> Finding:
        """Check that their offsets may be committed at the destination."""
        if refused := await self.refused(self._destination):
            return failed(f"refused: {some(refused)}", f"permit {whom(self._destination)} READ on these groups")
        return passed(f"{len(self.groups):,} may be committed") if self.groups else skipped("no group is known")

    async def standby(self) -> Finding:
        """Check that a replicator may join the link's own group, which decides who copies; show its members."""
        if await self.refused(self._destination, [self._link]):
            remedy = f"permit {whom(self._destination)} READ on group {self._link}: without it no replicator stands by"
            return (failed if self._standbys else warning)(f"refused: {self._link}", remedy)
        return passed(replicators(await members(self._destination, self._link) or Members()))

    async def refused(self, cluster: KafkaCluster, groups: Sequence[str] = ()) -> list[str]:
        """The groups, or those of ``groups``, whose offsets may not be committed in a cluster."""
        node = next(iter((await cluster.metadata([])).brokers))
        nowhere = {Partition(self._nobodys, 0): Commit(0)}
        failures = await commit_offsets(cluster, {Group(name, node): nowhere for name in groups or self.groups})
        return [name for name, error in failures.items() if getattr(error, "code", "") == f"GROUP_{_DENIED}"]


class FailbackRights:
    """The rights at the source to fail back; elsewhere the source is only read."""

    def __init__(self, source: KafkaCluster, topics: SourceTopics, groups: GroupRights, naming: Naming) -> None:
        self._source = source
        self._topics = topics
        self._groups = groups
        self._link, self._naming = naming, naming.failback

    async def examine(self) -> Finding:
        """Name the rights that are missing; they may be granted later."""
        names = [topic.name for topic in self._topics.matching[:TOPICS_MAX]]
        rights = await permitted_operations(self._source, names)
        refused = [name for name in names if AclOperation.WRITE not in rights.get(name, {AclOperation.WRITE})]
        lacks = [f"WRITE on {some(refused)}"] if refused else []
        lacks += await self._lacks_for_positions()
        lacks += [f"READ on groups {some(groups)}"] if (groups := await self._groups.refused(self._source)) else []
        diverged = [NewTopic(self._link.diverged(name), 1, -1, {}) for name in names[:1]]
        lacks += [f"for --keep-diverged CREATE on {name}" for name in await self._forbidden(diverged)]
        if lacks:
            return skipped(f"only to fail back {whom(self._source)} lacks: {'; '.join(lacks)}")
        return passed(f"permitted to {some(names)}")

    async def _lacks_for_positions(self) -> list[str]:
        """The rights that are missing for the topics of positions and maps, and for the transactional ids."""
        topics = positions_topic(self._naming, 1, -1), offsets_topic(self._naming, 1, -1)
        names = [topic.name for topic in topics]
        missing = await self._forbidden(topics)
        lacks = [f"CREATE and READ on topics {some(missing)}"] if missing else []
        partitions = [Partition(name, 0) for name in (*names, self._naming.doctors_id)]
        lane = self._naming.transactional_id(0)
        codes = await try_partitions(await self._source.any_broker(), Producer(lane, 0, 0), partitions)
        if codes[partitions[0]] is ErrorCode.transactional_id_authorization_failed:
            return [*lacks, f"WRITE on transactional ids that begin with {self._naming.replicator}."]
        refused = [name for name in names if codes[Partition(name, 0)] is ErrorCode.topic_authorization_failed]
        return [*lacks, f"WRITE on topics {some(refused)}"] if refused else lacks

    async def _forbidden(self, topics: Sequence[NewTopic]) -> list[str]:
        """Those of the topics that are missing, or invisible, and must not be made."""
        there = (await self._source.metadata([topic.name for topic in topics])).topics
        absent = [topic for topic in topics if topic.name not in there or there[topic.name].error is not ErrorCode.none]
        failures = (await ConfigFilter(self._source).fit(absent)).failures
        denied = [name for name, error in failures.items() if getattr(error, "code", "").endswith(_DENIED)]
        raise_first(error for name, error in failures.items() if name not in denied)
        return denied
