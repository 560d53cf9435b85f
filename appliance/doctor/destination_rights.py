"""The rights at the destination: making topics, writing partitions, transactions, the positions topic.

Only an abort marker is left behind, see ``appliance.doctor``:

- topics are made for validation only;
- whether a partition may be written is asked by adding it to a transaction together with one of a topic that does not
  exist. The coordinator takes all or none, so it takes none, but says of each whether it may be written. Topics that
  are yet to be made can be asked for in the same way;
- a transaction is begun on the positions topic, and aborted; where copies are shared, with a batch in the topic of
  producers.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeVar

from kio.schema.errors import ErrorCode

from appliance.doctor.source_topics import SourceTopics, unreadable
from appliance.doctor.step import Finding, failed, passed, skipped
from appliance.errors import ApplianceError, BrokerRefused
from appliance.kafka.client.clock import now_ms
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.config_filter import ConfigFilter, Made
from appliance.kafka.client.configs import configs
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.fetch import FetchLimits
from appliance.kafka.client.partition_reader import fetch_partition
from appliance.kafka.client.produce import Copy, check_produced, produce
from appliance.kafka.client.topics import NewTopic, hidden_topics
from appliance.kafka.client.transactions import (
    Producer,
    add_partitions,
    end_transaction,
    init_producer_id,
    try_partitions,
)
from appliance.kafka.protocol.metadata import Topic
from appliance.kafka.records.batch import split
from appliance.kafka.records.records import pack
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.naming import PRODUCERS, REGISTRY, Naming
from appliance.link.model.producers import encode_producer
from appliance.link.model.topic_configs import (
    mirror_topic,
    missed,
    new_copies,
    offsets_topic,
    positions_topic,
    registry_topic,
    told,
    unknown,
)
from appliance.listing import some
from appliance.settings.values import Settings

TOPICS_MAX = 1000
"""Most topics checked."""

_PAUSE_MAX = 0.1
_REQUEST_SECONDS = 15.0
_UNDECIDED = FetchLimits(64 * 1024, wait=1.0, committed=False)
_POLICY = "cleanup.policy"
_COMPACTED = "compact"
_NO_SUCH_ID = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"

T = TypeVar("T")


class Destination:
    """The destination cluster, as the replicator writes to it.

    Args:
        cluster: the cluster.
        sources: the topics to copy; while they are unknown, only the positions topic is checked.
    """

    def __init__(self, settings: Settings, cluster: KafkaCluster, sources: SourceTopics) -> None:
        self._settings = settings
        self._naming = Naming.of(settings)
        self._cluster = cluster
        self._sources = sources
        self._key = settings.destination.login or "DESTINATION_API_KEY"
        self._filter = ConfigFilter(cluster, self._naming.positions_topic)
        self._producer: Producer | None = None

    async def create(self) -> Finding:
        """Check that missing topics can be made, and that existing ones can be described.

        Raises:
            Unreachable, BrokerRefused, BrokerBusy: as everywhere.
        """
        there = (await self._cluster.metadata(None)).topics
        held = [copy for copy in self._copies() if copy in there]
        known = await self._filter.known()
        missing = [topic for topic in self._wanted(known) if topic.name not in there]
        made = await self._filter.fit(missing)
        for name, error in made.failures.items():
            return failed(str(error), self._create_remedy(name, error))
        if hidden := await hidden_topics(self._cluster, made.there):
            return failed(f"{self._key} may not see {some(sorted(hidden))}", f"permit {self._key} DESCRIBE on them")
        try:
            await configs(self._cluster, held)
        except BrokerRefused as error:
            return failed(str(error), f"permit {self._key} DESCRIBE_CONFIGS and ALTER_CONFIGS on the copies")
        can_be_made = some([topic.name for topic in missing]) or "nothing is missing"
        return passed(
            f"{len(held)} copies are there, can be made: {can_be_made}{self._unknown}{self._without(made, known)}"
        )

    async def write(self) -> Finding:
        """Check that every copy, the positions topic and the registry may be written.

        Raises:
            Unreachable, BrokerRefused, BrokerBusy: as everywhere.
        """
        naming = self._naming
        ours = naming.positions_topic, naming.offsets_topic, REGISTRY, *([PRODUCERS] if naming.shared else ())
        names = [*self._copies(), *ours, *self._mirrors]
        asked = [(name, 0) for name in (*names, naming.doctors_id)]
        try:
            producer = await self._take()
            codes = await self._at_coordinator(lambda connection: try_partitions(connection, producer, asked))
        except BrokerRefused as error:
            if error.code == _NO_SUCH_ID:
                return skipped("cannot be asked without a transactional id: see the next step")
            raise
        refused = [name for name in names if codes.get((name, 0)) is ErrorCode.topic_authorization_failed]
        if refused:
            return failed(
                f"{len(refused)} of {len(names)} refused: {some(refused)}", f"permit {self._key} WRITE on them"
            )
        return passed(f"permitted on {some(names)}{self._unknown}")

    async def transactions(self) -> Finding:
        """Begin a transaction, and abort it; of shared copies, see that the cluster keeps its producer id in a batch.

        Raises:
            Unreachable, BrokerRefused, BrokerBusy: as everywhere.
        """
        name = self._naming.positions_topic
        try:
            producer = await self._take()
            await self._at_coordinator(lambda _: self._cluster.coordinator(REGISTRY))
            if name not in (await self._cluster.metadata([name])).topics:
                return passed(f"{producer.transactional_id} is permitted; none can be begun before there is {name}")
            await self._at_coordinator(lambda connection: add_partitions(connection, producer, [(name, 0)]))
            kept = await self._producer_id_of_a_batch(producer)
            await self._at_coordinator(
                lambda connection: end_transaction(connection, producer, _REQUEST_SECONDS, committed=False)
            )
        except BrokerRefused as error:
            return failed(str(error), self._transaction_remedy(error))
        if kept not in (None, producer.id):
            what = f"a batch with producer id {producer.id} was stored with {kept}"
            return failed(what, f"share no copies in this cluster: {self._naming.variable}, REPLICA_FAN_IN")
        return passed(f"begun and aborted as {producer.transactional_id}{', its producer id is kept' if kept else ''}")

    async def _producer_id_of_a_batch(self, producer: Producer) -> int | None:
        """The producer id in the header of a batch that was written with this one; None if no copies are shared yet.

        The batch is one of the topic of producers, in the open transaction.
        """
        partition = (PRODUCERS, 0)
        metadata = await self._cluster.metadata([PRODUCERS])
        if not self._naming.shared or PRODUCERS not in metadata.topics:
            return None
        await self._at_coordinator(lambda connection: add_partitions(connection, producer, [partition]))
        record = encode_producer(metadata.cluster_id, producer, self._naming, now_ms())
        leader = await self._cluster.broker(metadata.leader(*partition), "produce")
        sent = await produce(leader, producer, [Copy(partition, memoryview(pack([record], 0)), 0)])
        offset = check_produced(await sent)[partition]
        fetched = await fetch_partition(self._cluster, metadata, partition, offset, "doctor", _UNDECIDED)
        return next((each.header.producer_id for each in split(fetched.records)), None)

    async def positions(self) -> Finding:
        """Check that the positions topic is as the replicator needs it, or does not exist yet.

        Raises:
            Unreachable, BrokerRefused, BrokerBusy: as everywhere.
        """
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
        if await unreadable(self._cluster, metadata, [topic]):
            return failed(f"{name} may not be read", f"permit {self._key} READ on {name}")
        return self._led(topic)

    def _led(self, topic: Topic) -> Finding:
        leaderless = sum(leader < 0 for leader in topic.leaders)
        if leaderless:
            detail = f"{leaderless} of {len(topic.leaders)} partitions of {topic.name} have no leader"
            return failed(detail, "start the destination brokers that are down")
        return passed(f"{topic.name} is compacted, {len(topic.leaders)} partitions")

    @property
    def _unknown(self) -> str:
        return "" if self._sources.matching else "; of the copies nothing is known, as the source's topics are not"

    def _copies(self) -> list[str]:
        return [self._naming.destination(topic.name) for topic in self._sources.matching][:TOPICS_MAX]

    def _wanted(self, known: Collection[str] | None) -> list[NewTopic]:
        topics, naming, engine = self._settings.topics, self._naming, self._settings.engine
        factor, compacts = topics.replication_factor, not (topics.shared or topics.follows_configs)
        sources = self._sources.matching[:TOPICS_MAX]
        copies = new_copies(sources, self._configs_to_follow(), naming, factor, known, compacts=compacts)
        lanes = engine.lanes or engine.task_count
        mirrors = [mirror_topic(name, factor) for name in self._mirrors]
        ours = [positions_topic(naming, lanes, factor), offsets_topic(naming, lanes, factor), registry_topic(factor)]
        return [*copies, *ours, *mirrors]

    @property
    def _mirrors(self) -> list[str]:
        groups = [self._naming.groups_topic] if self._settings.groups.wanted else []
        return [*self._naming.mirror_topics, *groups]

    def _configs_to_follow(self) -> Mapping[str, Mapping[str, str]]:
        follow = self._settings.topics.configs_to_follow
        return {name: follow(configs) for name, configs in self._sources.configs.items()}

    def _without(self, made: Made, known: Collection[str] | None) -> str:
        """A remark about settings left out."""
        left_out = {topic.name: missed(made.left_out.get(topic.name, {}), topic.configs) for topic in made.topics}
        wanted = self._configs_to_follow()
        for topic in self._sources.matching:
            left_out.setdefault(self._naming.destination(topic.name), {}).update(
                unknown(wanted.get(topic.name, {}), known)
            )
        whys = told({name: causes for name, causes in left_out.items() if causes})["cause"]
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

    async def _take(self) -> Producer:
        """A producer under the doctor's own id; it fences other doctors only."""
        if self._producer is None:
            name, timeout = self._naming.doctors_id, self._settings.engine.transaction_timeout
            self._producer = await self._at_coordinator(lambda connection: init_producer_id(connection, name, timeout))
        return self._producer

    async def _at_coordinator(self, ask: Callable[[BrokerConnection], Awaitable[T]]) -> T:
        """The answer of the transaction coordinator; it is asked again while it is not ready."""
        name = self._naming.doctors_id

        async def attempt() -> T:
            self._cluster.forget_coordinator(name)
            return await ask(await self._cluster.coordinator(name))

        return await retry_while_busy(attempt, longest_pause=_PAUSE_MAX)
