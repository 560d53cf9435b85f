"""Whose a copy is: the registry of a destination cluster, in which all of its links look (invariant I).

A compacted topic of one partition, ``replicator-registry``. A record says that a copy, known by name and topic id,
belongs to a link. Whoever wants to write one takes the transactional id of the same name first, which fences all others
that are about to; then reads to the end; and then claims what nobody has. So of two links one is always the first.
"""

import asyncio
import json
import random
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace

from appliance.errors import BrokerBusy, BrokerRefused, Fenced, PartitionsUnavailable, PeerError, Unreachable
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.config_filter import ConfigFilter
from appliance.kafka.offsets import Bound, list_offsets
from appliance.kafka.records import Record, body, key_and_value
from appliance.kafka.transactions import Producer, init_producer_id
from appliance.replicator.naming import REGISTRY
from appliance.replicator.patience import until_free
from appliance.replicator.recall import read_records
from appliance.replicator.topic_configs import registry_topic
from appliance.replicator.writer import LOADING, Writer

_VERSION = 1
_PARTITION = (REGISTRY, 0)
_TRANSACTION_TIMEOUT = 30.0
_TRIES = 10
_PAUSE = 0.5
_SHOWN_TIMEOUT = 10.0

_OVERTAKEN = "UNKNOWN_SERVER_ERROR"
"""What a coordinator says to a commit when another begins to take its id at the same moment."""

Copy = tuple[str, uuid.UUID]
"""A destination topic's name and id."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A copy's link, as ``replicator-<SOURCE_CLUSTER_ID>``; ``since`` in milliseconds.

    One that is not ``taken_over`` is void where another link had the copy before. ``left_out`` are the settings of the
    source topic that the copy does not have, since the destination does not take them.
    """

    link: str
    since: int
    taken_over: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(slots=True)
class Registry:
    """The registry, as one link sees it: ``claims`` is what has been read of it."""

    cluster: KafkaCluster
    link: str
    replication_factor: int = -1
    claims: dict[Copy, Claim] = field(default_factory=dict)
    _id: uuid.UUID | None = None
    _read_to: int = -1

    async def refresh(self) -> None:
        """Read what has been committed since.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused, PeerError: as everywhere.
        """
        metadata = await self.cluster.metadata([REGISTRY])
        topic = metadata.topics.get(REGISTRY)
        if topic is None or topic.id != self._id:
            self.claims.clear()
            self._id, self._read_to = (topic.id if topic else None), -1
        if topic is None:
            return
        if self._read_to < 0:
            self._read_to = (await list_offsets(self.cluster, metadata, [_PARTITION], Bound.START))[_PARTITION]
        end = (await list_offsets(self.cluster, metadata, [_PARTITION], Bound.STABLE_END))[_PARTITION]
        while self._read_to < end:
            records, self._read_to = await read_records(self.cluster, metadata, _PARTITION, self._read_to)
            for record in records:
                self._take(record)

    def of_others(self, copies: Mapping[str, uuid.UUID]) -> dict[str, Claim]:
        """Those of the copies that belong to other links, by name."""
        claims = {name: self.claims.get((name, topic_id)) for name, topic_id in copies.items()}
        return {name: claim for name, claim in claims.items() if claim is not None and claim.link != self.link}

    def has_all(self, copies: Mapping[str, uuid.UUID]) -> bool:
        """Whether it is known of each copy whose it is."""
        return all(copy in self.claims for copy in copies.items())

    async def claim(self, copies: Mapping[str, uuid.UUID], *, take_over: bool = False) -> dict[str, Claim]:
        """Claim the copies that are nobody's, or with ``take_over`` all; those that belong to others, by name.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused, PeerError: as everywhere.
        """
        now = _now()
        if take_over or not self.has_all(copies):
            await self._make()
            await self._write(
                lambda: {
                    copy: Claim(self.link, now, take_over)
                    for copy in copies.items()
                    if take_over or copy not in self.claims
                }
            )
        return self.of_others(copies)

    async def note(self, left_out: Mapping[Copy, tuple[str, ...]]) -> None:
        """Write down which settings copies of this link do not have, where that has changed.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused, PeerError: as everywhere.
        """

        def changed() -> dict[Copy, Claim]:
            return {
                copy: replace(claim, left_out=left_out.get(copy, ()))
                for copy, claim in self.claims.items()
                if copy in left_out and claim.link == self.link and claim.left_out != left_out[copy]
            }

        if changed():
            await self._write(changed)

    async def _write(self, wanted: Callable[[], Mapping[Copy, Claim]]) -> None:
        """Write claims; whenever another link was about to, too, what is wanted is asked for again.

        So it is while the coordinator's broker does not know the registry yet, which may have been made a moment ago.
        """
        for attempt in range(_TRIES):
            try:
                return await self._write_alone(wanted)
            except (Fenced, PartitionsUnavailable, BrokerRefused) as error:
                again = not isinstance(error, BrokerRefused) or error.code == _OVERTAKEN
                if not again or attempt == _TRIES - 1:
                    raise
                await asyncio.sleep(_PAUSE * random.random())
        return None

    async def _make(self) -> None:
        known = await self.cluster.metadata([REGISTRY])
        if REGISTRY not in known.topics:
            made = await ConfigFilter(self.cluster).make([registry_topic(self.replication_factor)])
            for error in made.failures.values():
                raise error
        async with asyncio.timeout(_SHOWN_TIMEOUT):
            while True:
                try:
                    return await self.refresh()
                except BrokerBusy:
                    await asyncio.sleep(_PAUSE / 10)

    async def _write_alone(self, wanted: Callable[[], Mapping[Copy, Claim]]) -> None:
        producer = await until_free(self._take_id, LOADING)
        await self.refresh()
        claims = wanted()
        if not claims:
            return
        metadata = await self.cluster.metadata([REGISTRY])
        now = _now()
        records = [encode_claim(copy, claim, now) for copy, claim in claims.items()]
        writer = Writer(self.cluster, producer, _PARTITION, metadata, _TRANSACTION_TIMEOUT)
        await writer.write((), lambda _: records)
        await self._until_shown(claims)

    async def _until_shown(self, claims: Mapping[Copy, Claim]) -> None:
        """Read until our own claims are seen, and hold: whatever was claimed before, by anybody, has been seen then."""
        try:
            async with asyncio.timeout(_SHOWN_TIMEOUT):
                while any(self.claims.get(copy) != claim for copy, claim in claims.items()):
                    await self.refresh()
        except TimeoutError as error:
            raise Unreachable(f"{REGISTRY} does not show what was written to it") from error

    async def _take_id(self) -> Producer:
        self.cluster.forget_coordinator(REGISTRY)
        coordinator = await self.cluster.coordinator(REGISTRY)
        return await init_producer_id(coordinator, REGISTRY, _TRANSACTION_TIMEOUT)

    def _take(self, record: Record) -> None:
        copy, claim = decode_claim(record)
        before = self.claims.get(copy)
        if claim is None:
            self.claims.pop(copy, None)
        elif before is None or before.link == claim.link or claim.taken_over:
            self.claims[copy] = claim


def decode_claim(record: Record) -> tuple[Copy, Claim | None]:
    """Whose a copy is; nobody's by a tombstone.

    Raises:
        PeerError: somebody else has written to the registry, or a newer appliance has.
    """
    key_bytes, value_bytes = key_and_value(record.body)
    try:
        key = json.loads(key_bytes or b"")
        copy = str(key["copy"]), uuid.UUID(key["id"])
        if value_bytes is None:
            return copy, None
        value = json.loads(value_bytes)
        if value["version"] != _VERSION:
            raise PeerError(
                f"{REGISTRY} holds version {value['version']} at offset {record.offset}: a newer appliance's"
            )
        left_out = tuple(map(str, value["left_out"]))
        return copy, Claim(str(value["link"]), int(value["since"]), bool(value["taken_over"]), left_out)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PeerError(f"{REGISTRY} holds something else at offset {record.offset}: {error!r}") from error


def belongs_to_another(copy: str, claim: Claim) -> str:
    """Why nothing is copied to a topic."""
    return (
        f"destination topic {copy} belongs to link {claim.link}: choose another REPLICA_TOPICS_DEST_SUFFIX; when that "
        "link is no more, take the copy over by `appliance resume --topic ... --take-over`"
    )


def encode_claim(copy: Copy, claim: Claim, now: int) -> Record:
    """The record that says whose a copy is; ``now`` is its timestamp in milliseconds."""
    key = {"copy": copy[0], "id": copy[1].hex}
    value = {"version": _VERSION, **asdict(claim)}
    return Record(0, now, body(json.dumps(key).encode(), json.dumps(value).encode()))


def _now() -> int:
    return time.time_ns() // 1_000_000
