"""The producer ids of lanes in a cluster, as values and as records of the topic of producers.

A lane leaves its name there after each InitProducerId, in the transaction with its mark, and so before any copy:
whoever finds a batch of a lane in that cluster finds the name by a read to the topic's end. The transaction of the name
may still be undecided then, or its marker not written: the topic is read uncommitted. A name is never deleted, and an
aborted one is true too. Only lanes of shared copies must leave one.

Keys and values are JSON::

    {"cluster", "producer"}    ->    {"version", "transactional_id", "link", "source", "epoch", "modes"}

``modes`` are pairs of an epoch and true, if from then on the lane shares its copies; without them it always did. The
name of a lane that keeps to itself has "/alone" behind its cluster: older releases take that for another cluster's
name, and copy what they would drop otherwise.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from appliance.errors import NewerRelease, PeerError, ProducersLost
from appliance.kafka.client.transactions import Producer
from appliance.kafka.records.batch import TRANSACTIONAL, Header
from appliance.kafka.records.records import Record, body, key_and_value
from appliance.link.model.json_records import fields, reading, text, versioned, whole
from appliance.link.model.naming import PRODUCERS, Naming

_VERSION = 1
_ALONE = "/alone"
_LANE = re.compile(r"(replicator-.+)\.lane-[0-9]+")


@dataclass(frozen=True, slots=True)
class RegisteredProducer:
    """A lane's producer id in a cluster, with its ``modes`` up to ``epoch``."""

    producer_id: int
    transactional_id: str
    link: str
    epoch: int
    modes: tuple[tuple[int, bool], ...] = ((0, True),)

    def shares(self, epoch: int) -> bool:
        """True if the lane shared its copies in that epoch: they are not copied on."""
        return next((shares for first, shares in reversed(self.modes) if first <= epoch), True)

    def then(self, later: "RegisteredProducer") -> "RegisteredProducer":
        """The same in a later epoch; what is known of earlier ones stays."""
        if later.epoch <= self.epoch:
            return self
        first = self.epoch + 1
        modes = [*self.modes, (first, later.shares(first)), *(mode for mode in later.modes if mode[0] > first)]
        changes = [mode for at, mode in enumerate(modes) if not at or mode[1] is not modes[at - 1][1]]
        return replace(later, modes=tuple(changes))


@dataclass(slots=True)
class Producers:
    """The lanes' producer ids in one cluster, as read so far, and those that were found to be others'.

    Of the ``unreadable`` nobody knows whether they are lanes', each with the reason.
    """

    cluster: str
    lanes: dict[int, RegisteredProducer] = field(default_factory=dict)
    others: set[int] = field(default_factory=set)
    unreadable: dict[int, PeerError] = field(default_factory=dict)

    def take(self, records: Iterable[Record]) -> None:
        """Add the names in further records of the topic; those of another cluster, and of none, are left out.

        Raises:
            NewerRelease: a newer appliance has written there.
            ProducersLost: a producer id was handed out twice.
        """
        for record in records:
            entry = self._decoded(record)
            if entry is None:
                continue
            before = self.lanes.get(entry.producer_id, entry)
            if before.transactional_id != entry.transactional_id:
                raise ProducersLost(
                    f"producer id {entry.producer_id} is that of {before.transactional_id} and of "
                    f"{entry.transactional_id}: the cluster has handed it out twice"
                )
            if entry.producer_id in self.others and any(shares for _, shares in entry.modes):
                raise ProducersLost(
                    f"{entry.transactional_id} has left its name for producer id {entry.producer_id} after its batches"
                )
            self.add(entry)

    def add(self, producer: RegisteredProducer) -> None:
        """Add what was found of a lane."""
        before = self.lanes.get(producer.producer_id)
        self.others.discard(producer.producer_id)
        self.unreadable.pop(producer.producer_id, None)
        self.lanes[producer.producer_id] = before.then(producer) if before else producer

    def unknown(self, headers: Iterable[Header]) -> set[int]:
        """The producer ids of transactional batches that may be lanes', as far as is known: a lane names each epoch."""
        transactional = [header for header in headers if header.attributes & TRANSACTIONAL]
        unknown = {header.producer_id for header in transactional if self._lane(header) is None}
        return unknown - self.others - self.unreadable.keys()

    def _decoded(self, record: Record) -> RegisteredProducer | None:
        """The name in a record; None without one of this cluster. One that cannot be read stops its batches alone."""
        producer_id = None
        try:
            with reading(PRODUCERS, record):
                key_bytes, value_bytes = key_and_value(record.body)
                key = fields(key_bytes)
                if text(key["cluster"]).removesuffix(_ALONE) != self.cluster or value_bytes is None:
                    return None  # no link writes a tombstone, and it takes no name away
                producer_id = whole(key["producer"])
                return _name(producer_id, versioned(value_bytes, PRODUCERS, record.offset, [_VERSION]))
        except NewerRelease:
            raise
        except PeerError as error:
            if producer_id is not None:
                self.unreadable[producer_id] = error
            return None

    def _lane(self, header: Header) -> RegisteredProducer | None:
        lane = self.lanes.get(header.producer_id)
        return lane if lane is not None and header.producer_epoch <= lane.epoch else None

    def is_copy(self, header: Header) -> bool:
        """True for a batch that a lane of shared copies wrote; its producer id is not unknown.

        Raises:
            ProducersLost: a lane's producer id is on a batch that no lane can have written.
        """
        lane, transactional = self._lane(header), header.attributes & TRANSACTIONAL
        if lane is None and transactional and header.producer_id not in self.others:
            if header.producer_id in self.unreadable:
                raise ProducersLost(str(self.unreadable[header.producer_id]))
            raise AssertionError(f"nobody has looked up producer id {header.producer_id}")
        if lane is not None and not transactional:
            raise ProducersLost(
                f"the batch at offset {header.base_offset} is not transactional and has producer id "
                f"{header.producer_id}, which is that of {lane.transactional_id}: the cluster has handed it out twice"
            )
        return lane is not None and lane.shares(header.producer_epoch)

    def of(self, transactional_id: str) -> list[RegisteredProducer]:
        """The producer ids that a lane has had."""
        return [lane for lane in self.lanes.values() if lane.transactional_id == transactional_id]

    def of_link(self, link: str) -> Collection[int]:
        """The producer ids of a link's lanes."""
        return {number for number, lane in self.lanes.items() if lane.link == link}


def link_of(transactional_id: str) -> str:
    """The link of a lane's transactional id; empty if it is none."""
    match = _LANE.fullmatch(transactional_id)
    return match[1] if match else ""


def encode_producer(
    cluster: str, producer: Producer, naming: Naming, now: int, before: RegisteredProducer | None = None
) -> Record:
    """The record by which a lane leaves its name in a cluster; ``now`` is its timestamp in milliseconds.

    ``before`` is the name that it has left there in earlier epochs.
    """
    names = producer.id, producer.transactional_id, naming.replicator
    name = RegisteredProducer(*names, producer.epoch, ((0, naming.sharing.others_write),))
    key = {"cluster": cluster + ("" if naming.sharing.others_write else _ALONE), "producer": producer.id}
    value = {
        "version": _VERSION,
        "transactional_id": producer.transactional_id,
        "link": naming.replicator,
        "source": naming.source,
        "epoch": producer.epoch,
        "modes": (before.then(name) if before else name).modes,
    }
    return Record(0, now, body(json.dumps(key).encode(), json.dumps(value).encode()))


def _name(producer_id: int, value: Mapping[str, Any]) -> RegisteredProducer:
    modes = tuple((whole(first), bool(shares)) for first, shares in value.get("modes", [(0, True)]))
    names = text(value["transactional_id"]), text(value["link"])
    return RegisteredProducer(producer_id, *names, whole(value["epoch"]), modes)
