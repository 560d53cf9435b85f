"""Beats: each process says every second what it has promised, whom it reaches and whom it suspects; and wishes.

They decide only when somebody begins an epoch: every step of the protocol is safe at any time, by anybody. A home is
suspected once its beats have not counted for some seconds by one's own clock. A beat counts only while its lane has
committed something, has read enough others, and has opened, or advanced its opening: so a home that is stuck, or cut
off in one direction, is suspected like a dead one. A candidate goes on only if enough clusters suspect the home.
"""

import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from appliance.kafka.records.records import Record, body, key_and_value
from appliance.link.model.json_records import fields, reading, text, versioned, whole
from appliance.link.model.order import NO_EPOCH, Epoch, Members, Promise
from appliance.link.model.order_records import epoch_of
from appliance.order.model.elections import enough

SILENCE = 6.0
"""Seconds without a beat that counts, after which a home is suspected; and for which a beat holds."""

_SPREAD, _RANK_PAUSE = 1.0, 0.5
"""A candidate waits up to the first, and the second for each cluster before it in GLOBAL_CLUSTERS, in seconds."""

_VERSION = 1
_TOPIC = "the topic of beats"


@dataclass(frozen=True, slots=True)
class LaneBeat:
    """One lane of a process: ``works`` if its beat counts; ``yields_to`` the cluster that may become home at once."""

    epoch: Epoch = NO_EPOCH
    works: bool = False
    suspects: bool = False
    reaches: Members = ()
    yields_to: str = ""


@dataclass(frozen=True, slots=True)
class Beat:
    """The beat of the process beside a cluster; ``lanes`` are in their order."""

    cluster: str
    lanes: tuple[LaneBeat, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """An operator's wish: that ``target`` becomes home; ``lost`` are the clusters that the operator declares lost.

    With ``members`` the home begins an epoch of these. Without ``waits``, the target begins at once. ``alone``: the
    home shows what nobody else has until somebody follows it again. ``resumed`` are origins, each as cluster, topic,
    partition, and the offset at which the home goes on there. With ``gap`` the ``target`` goes on where it lacks
    records that nobody has any more.
    """

    id: str
    target: str = ""
    lost: Members = ()
    members: Members = ()
    waits: bool = True
    alone: bool = False
    resumed: tuple[tuple[str, str, int, int], ...] = ()
    gap: bool = False


def encode_beat(beat: Beat, now: int) -> Record:
    """The record of a beat; ``now`` is its timestamp in milliseconds."""
    lanes = [(*each.epoch, each.works, each.suspects, each.reaches, each.yields_to) for each in beat.lanes]
    return _record({"beat": beat.cluster}, {"lanes": lanes}, now)


def encode_wish(wish: Wish, now: int) -> Record:
    """The record of a wish."""
    value = dataclasses.asdict(wish)
    del value["id"]
    return _record({"wish": wish.id}, value, now)


def decode(record: Record) -> Beat | Wish:
    """Decode a record of the topic of beats.

    Raises:
        PeerError: a foreign writer or a newer appliance has written there.
    """
    with reading(_TOPIC, record):
        key_bytes, value_bytes = key_and_value(record.body)
        key, value = fields(key_bytes), versioned(value_bytes, _TOPIC, record.offset, [_VERSION])
        if "beat" in key:
            return Beat(text(key["beat"]), tuple(_lane_of(*each) for each in value["lanes"]))
        lost, members = (tuple(map(text, value[name])) for name in ("lost", "members"))
        flags, resumed = (
            (bool(value["waits"]), bool(value["alone"])),
            tuple(_origin_of(*each) for each in value["resumed"]),
        )
        gap = bool(value.get("gap", False))
        return Wish(text(key["wish"]), text(value["target"]), lost, members, *flags, resumed, gap)


def _origin_of(cluster: object, topic: object, number: object, offset: object) -> tuple[str, str, int, int]:
    return text(cluster), text(topic), whole(number, 0), whole(offset, 0)


def _lane_of(
    number: object, home: object, works: object, suspects: object, reaches: Any, yields_to: object
) -> LaneBeat:
    epoch, names = epoch_of((whole(number), text(home))), tuple(map(text, reaches))
    return LaneBeat(epoch, bool(works), bool(suspects), names, text(yields_to))


def _record(key: Mapping[str, Any], value: Mapping[str, Any], now: int) -> Record:
    return Record(0, now, body(_json(key), _json({"version": _VERSION, **value})))


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass(slots=True)
class Watch:
    """The watch of one lane over its home; times are seconds of any monotonic clock.

    ``place`` is that of the cluster ``own`` in GLOBAL_CLUSTERS.
    """

    own: str
    place: int
    since: float
    """When a beat of the home counted last, or its epoch was promised."""
    epoch: Epoch = NO_EPOCH
    _heard: dict[str, tuple[LaneBeat, float]] = field(default_factory=dict)
    _due: float | None = None

    def hear(self, cluster: str, beat: LaneBeat, now: float) -> None:
        """Take in a beat of the lane in another cluster."""
        self._heard[cluster] = beat, now
        if cluster == self.epoch.home and beat.works and beat.epoch == self.epoch:
            self.since = now

    def promised(self, epoch: Epoch, now: float) -> None:
        """Note the epoch that was promised last: its home has the time to show that it works."""
        if epoch != self.epoch:
            self.epoch, self.since, self._due = epoch, now, None

    def suspects(self, now: float) -> bool:
        """True if the home is suspected."""
        return self.epoch.home != self.own and now - self.since >= SILENCE

    def fresh(self, now: float) -> Mapping[str, LaneBeat]:
        """The beats of others that still hold."""
        return {name: beat for name, (beat, at) in self._heard.items() if now - at < SILENCE}

    def stands(self, promise: Promise, now: float, chance: float) -> bool:
        """True when this cluster is to stand for home now; ``chance`` is a random number from 0 to 1."""
        if not self.suspects(now) or not self._is_seconded(promise, now):
            self._due = None
            return False
        if self._due is None:
            self._due = now + _SPREAD * chance + _RANK_PAUSE * self.place
        return now >= self._due

    def _is_seconded(self, promise: Promise, now: float) -> bool:
        """True if enough clusters suspect the home, this one included, of each membership that counts."""
        others = {name for name, beat in self.fresh(now).items() if beat.suspects and beat.epoch == self.epoch}
        return self.own in promise.members and all(
            enough({self.own, *others}, members) for members in {promise.members, *promise.named}
        )


def is_working(
    now: float, committed: float, advanced: float, read: Mapping[str, float], members: Collection[str], least: int
) -> bool:
    """True if a lane's beat counts, by the times of its last commit and advance, and of each peer's last reading."""
    reached = sum(now - at < SILENCE for name, at in read.items() if name in members)
    return max(now - committed, now - advanced) < SILENCE and reached >= least


def reached(now: float, read: Mapping[str, float]) -> Iterable[str]:
    """The clusters that were read lately."""
    return sorted(name for name, at in read.items() if now - at < SILENCE)
