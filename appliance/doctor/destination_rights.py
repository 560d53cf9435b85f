"""The rights at the destination: making topics, writing partitions, reading and altering, the positions topic.

Nothing is left behind, see ``appliance.doctor``:

- topics are made for validation only;
- whether a partition may be written is asked by adding it to a transaction together with one of a topic that does not
  exist. The coordinator takes all or none, so it takes none, but says of each whether it may be written. Topics that
  are yet to be made can be asked for in the same way;
- records are written to a topic of the doctor's own alone, see ``trial_write``.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from appliance.doctor.source_topics import TOPICS_MAX, SourceTopics, unreadable
from appliance.doctor.step import Finding, Verdict, failed, passed, skipped, warning
from appliance.doctor.trial_write import TrialWrite
from appliance.errors import ApplianceError, BrokerRefused
from appliance.kafka.client.acls import AclOperation, permitted_operations
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.config_filter import ConfigFilter, FittedTopics
from appliance.kafka.client.configs import configs, write_limits
from appliance.kafka.client.topics import NewTopic, hidden_topics
from appliance.kafka.client.transactions import try_partitions
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.naming import DEAD_LETTERS, PRODUCERS, REGISTRY, Naming
from appliance.link.model.topic_configs import (
    log_fields,
    mirror_topic,
    missed,
    new_copies,
    offsets_topic,
    positions_topic,
    registry_topic,
    unknown,
)
from appliance.listing import some
from appliance.settings.values import Settings

_POLICY = "cleanup.policy"
_COMPACTED = "compact"
_NO_SUCH_ID = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


class Destination:
    """The destination cluster, as the replicator writes to it; while ``sources`` are unknown, no copies are checked."""

    def __init__(self, settings: Settings, cluster: KafkaCluster, sources: SourceTopics) -> None:
        self._settings = settings
        self._naming = Naming.of(settings)
        self._cluster = cluster
        self._sources = sources
        self._key = settings.destination.login or "DESTINATION_API_KEY"
        self._filter = ConfigFilter(cluster, self._naming.positions_topic)
        self._trial = TrialWrite(settings, cluster)

    async def create(self) -> Finding:
        """Check that missing topics can be made, and that existing ones can be described."""
        topics = (await self._cluster.metadata(None)).topics
        existing = [copy for copy in self._copies() if copy in topics]
        names = await self._filter.known_settings()
        missing = [topic for topic in self._wanted(names) if topic.name not in topics]
        fitted = await self._filter.fit(missing)
        for name, error in fitted.failures.items():
            return failed(str(error), self._create_remedy(name, error))
        if hidden := await hidden_topics(self._cluster, fitted.there):
            return failed(f"{self._key} may not see {some(sorted(hidden))}", f"permit {self._key} DESCRIBE on them")
        made = f"can be made: {some([topic.name for topic in missing])}" if missing else "none is missing"
        remarks = self._unknown + self._without(fitted, names)
        return passed(f"{len(existing):,} copies are there, {made}{remarks}")

    async def write(self) -> Finding:
        """Check that every copy, and every topic of the link's own, may be written."""
        names = self._with(AclOperation.WRITE)
        places = [Partition(name, 0) for name in (*names, self._naming.doctors_id)]
        try:
            producer = await self._trial.producer()
            codes = await self._trial.at_coordinator(lambda connection: try_partitions(connection, producer, places))
        except BrokerRefused as error:
            if error.code == _NO_SUCH_ID:
                return skipped("cannot be asked without a transactional id: see the step transactions")
            raise
        refused = [name for name in names if codes.get(Partition(name, 0)) is ErrorCode.topic_authorization_failed]
        if refused:
            return failed(
                f"{len(refused):,} of {len(names):,} refused: {some(refused)}", f"permit {self._key} WRITE on them"
            )
        return passed(f"permitted on {some(names)}{self._unknown}")

    async def others(self) -> Finding:
        """Check that all topics may be read; and of those that exist, the rights to changes that are needed later."""
        rights = await permitted_operations(self._cluster, self._with(AclOperation.DESCRIBE))
        lacks = {AclOperation.READ: await unreadable(self._cluster, self._with(AclOperation.READ))} | {
            operation: [name for name in self._with(operation) if operation not in rights.get(name, {operation})]
            for operation in (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS, AclOperation.ALTER)
        }
        refused = "; ".join(f"{operation.name} on {some(names)}" for operation, names in lacks.items() if names)
        if refused:
            judge = failed if lacks[AclOperation.READ] or lacks[AclOperation.DESCRIBE_CONFIGS] else warning
            return judge(f"refused: {refused}", f"permit {self._key} {refused}")
        return passed(f"all may be read, {len(rights):,} that exist may be altered{self._unknown}")

    async def transactions(self) -> Finding:
        """Commit a record to a topic as each of the link's is or will be, and read it back."""
        try:
            await self._trial.producer()
            await self._trial.at_coordinator(lambda _: self._cluster.coordinator(REGISTRY))
        except BrokerRefused as error:
            return failed(str(error), self._transaction_remedy(error))
        new_topics = self._wanted(await self._filter.known_settings())
        topics = (await self._cluster.metadata([topic.name for topic in new_topics])).topics
        limits, _ = await write_limits(self._cluster, topics)
        replicas = {name: topic.replicas[0] for name, topic in topics.items() if topic.replicas}
        missing = [topic.name for topic in new_topics if topic.name not in limits]
        finding = await self._trial.examine(self._settings.topics.replication_factor, "", missing)
        kinds = {(replicas[name], limits[name].in_sync): name for name in limits.keys() & replicas.keys()}
        for (count, least), name in kinds.items():
            if least > count and finding.verdict is Verdict.PASSED:
                finding = await self._trial.examine(count, str(least), [name])
        return finding

    async def positions(self) -> Finding:
        """Check that the positions topic is as the replicator needs it, or does not exist yet."""
        name = self._naming.positions_topic
        metadata = await self._cluster.metadata([name])
        topic = metadata.topics.get(name)
        if topic is None:
            return passed(f"{name} is not there yet: the replicator makes it")
        if topic.error is not ErrorCode.none:
            return failed(f"{name}: {topic.error.name.upper()}", f"permit {self._key} DESCRIBE on {name}")
        policy = (await configs(self._cluster, [name]))[name].get(_POLICY, "the cluster's default")
        if policy != _COMPACTED:
            change = f"kafka-configs.sh --alter --topic {name} --add-config {_POLICY}={_COMPACTED}"
            return failed(
                f"{name} has {_POLICY}={policy}: its records would be deleted", f"make it compacted: {change}"
            )
        if leaderless := sum(leader < 0 for leader in topic.leaders):
            detail = f"{leaderless} of {len(topic.leaders):,} partitions of {name} have no leader"
            return failed(detail, "start the destination brokers that are down")
        return passed(f"{name} is compacted, {len(topic.leaders):,} partitions")

    @property
    def _unknown(self) -> str:
        return "" if self._sources.matching else "; of the copies nothing is known, as the source's topics are not"

    def _with(self, operation: AclOperation) -> list[str]:
        """The link's topics, existing or not, to which it needs a right."""
        right_name, topics = operation.name.title().replace("_", ""), self.topics()
        needing = (right.of for right in RIGHTS if right_name in right.operations.split(", "))
        return [name for kind in needing for name in topics.get(kind, ())]

    def topics(self) -> Mapping[str, Collection[str]]:
        """The link's topics at the destination, by their names in ``RIGHTS``."""
        naming, copies = self._naming, self._copies()
        return {
            "copies": copies,
            "own": [naming.positions_topic, naming.offsets_topic],
            "dead": [copy + DEAD_LETTERS for copy in copies] if naming.dead_letters else [],
            "groups": [naming.groups_topic] if self._settings.groups.wanted else [],
            "registry": [REGISTRY],
            "producers": [PRODUCERS] if naming.sharing.others_write else [],
            "mirrors": naming.mirror_topics,
        }

    def _copies(self) -> list[str]:
        return [self._naming.destination(topic.name) for topic in self._sources.matching][:TOPICS_MAX]

    def _wanted(self, known: Collection[str] | None) -> list[NewTopic]:
        topics, naming, engine = self._settings.topics, self._naming, self._settings.engine
        factor, compacts = topics.replication_factor, topics.compacts_new_copies
        sources = self._sources.matching[:TOPICS_MAX]
        copies = new_copies(sources, self._configs_to_follow(), naming, factor, known, compacts=compacts)
        lanes = engine.lanes or engine.task_count
        own = self.topics()
        mirrors = [mirror_topic(name, factor) for name in (*own["mirrors"], *own["groups"])]
        ours = [positions_topic(naming, lanes, factor), offsets_topic(naming, lanes, factor), registry_topic(factor)]
        return [*copies, *ours, *mirrors, *(NewTopic(name, 1, -1, {}) for name in own["dead"])]

    def _configs_to_follow(self) -> Mapping[str, Mapping[str, str]]:
        follow = self._settings.topics.configs_to_follow
        return {name: follow(configs) for name, configs in self._sources.configs.items()}

    def _without(self, fitted: FittedTopics, known: Collection[str] | None) -> str:
        """A remark about settings left out."""
        left_out = {topic.name: missed(fitted.left_out.get(topic.name, {}), topic.configs) for topic in fitted.topics}
        configs = self._configs_to_follow()
        for topic in self._sources.matching:
            left_out.setdefault(self._naming.destination(topic.name), {}).update(
                unknown(configs.get(topic.name, {}), known)
            )
        whys = log_fields({name: causes for name, causes in left_out.items() if causes})["cause"]
        return f"; left out is what the destination does not take: {whys}" if whys else ""

    def _create_remedy(self, name: str, error: ApplianceError) -> str:
        code = error.code if isinstance(error, BrokerRefused) else ""
        if code == "INVALID_REPLICATION_FACTOR":
            factor = self._settings.topics.replication_factor
            return f"REPLICATION_FACTOR={factor}: expected no more than there are brokers"
        if code.endswith("AUTHORIZATION_FAILED"):
            return f"permit {self._key} CREATE on the cluster, or on topics such as {name}; or make it by hand"
        return f"make {name} by hand, as the cluster allows it"

    def _transaction_remedy(self, error: BrokerRefused) -> str:
        if error.code == "INVALID_TRANSACTION_TIMEOUT":
            return "lower TRANSACTION_TIMEOUT_SECONDS to the brokers' transaction.max.timeout.ms"
        prefix = f"{self._settings.replicator}."
        return f"permit {self._key} WRITE and DESCRIBE on transactional ids that begin with {prefix}, and on {REGISTRY}"


class Right(NamedTuple):
    """The beginnings of a row's cells, and the step that checks it; or of which topics at the destination it is."""

    cluster: str
    resource: str
    operations: str
    of: str


_TABLE = """
source | the topics that match | Describe, Read, DescribeConfigs | source: read access
source | groups that match | Describe | source: groups
source | with ACLS_SYNC=yes the cluster | Describe | source: ACLs
source | only to fail back: the topics, and topics and transactional ids | Write | source: failback
source | only to fail back: groups that match | Read | source: failback
source | only to fail back with --keep-diverged: topics | Create | source: failback
source | transactional ids of its producers | Describe | status
destination | topics that end in | Create, Describe, Read, Write, DescribeConfigs, AlterConfigs, Alter | copies
destination | topics replicator-<SOURCE_CLUSTER_ID>.positions | Create, Describe, Read, Write, DescribeConfigs | own
destination | with ON_TRANSFORM_ERROR=dead-letter | Create, Describe, Write, DescribeConfigs, AlterConfigs, Alter | dead
destination | for the doctor topic | Create, Describe, Read, Write, DescribeConfigs, Delete | destination: transactions
destination | groups that match | Read | destination: groups
destination | with REPLICA_GROUPS_REGEX topic | Create, Describe, Read, Write | groups
destination | topic replicator-registry | Create, Describe, Read, Write, DescribeConfigs | registry
destination, and to fail back the source | topic replicator-producers | Describe, Read, Write | producers
destination | with MM2_FORMATS=yes topics | Create, Describe, Read, Write | mirrors
destination | with ACLS_SYNC=yes the cluster | Alter | destination: ACLs
destination | group replicator-<SOURCE_CLUSTER_ID> | Read | destination: standby
destination | transactional ids that begin with | Describe, Write | destination: transactions
"""

RIGHTS = tuple(Right(*line.split(" | ")) for line in _TABLE.strip().splitlines())
