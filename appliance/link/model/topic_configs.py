"""The settings of the topics that the replicator makes: copies, and the positions topic. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from appliance.kafka.client.configs import LARGEST_BATCH, POLICY, Settings, set_on
from appliance.kafka.client.topics import NewTopic
from appliance.kafka.protocol.metadata import Topic
from appliance.link.model.naming import PRODUCERS, REGISTRY, Naming

NOT_KNOWN = "not known there"
"""The reason that a setting is left out: the destination does not have it, or does not allow setting it."""

NOT_YET = "its copy first gets the records that were there before"
"""The reason that a setting is left out for now: the copy would refuse such records."""

BY_HAND = "no link compacts a shared copy: do it there, once all its sources are compacted and copied"
"""The same of the clean-up policy of a shared copy."""

Configs = frozenset[tuple[str, str]]
"""Names and values of settings that a link has set on a copy, or was about to set; of one name also several."""

_ANY_TIME = str(2**63 - 1)
_SINCE_3_6 = {"message.timestamp.before.max.ms": _ANY_TIME, "message.timestamp.after.max.ms": _ANY_TIME}
_BEFORE_3_6 = {"message.timestamp.difference.max.ms": _ANY_TIME}
_TIMES_KEPT = {"message.timestamp.type": "CreateTime"}
"""With either of the two above, every record keeps its source's time, however old or early (invariant E; KIP-937)."""

_COMPACTED, _DELETED = "compact", "delete"
_MARKERS_KEPT = "delete.retention.ms"
# A starting lane reads everything that is not compacted yet, and the active segment never is. A commit marker stays for
# the retention time after that.
_SOON_COMPACTED = {POLICY: _COMPACTED, "segment.bytes": str(4 * 1024 * 1024), "min.cleanable.dirty.ratio": "0.1"}
_POSITIONS = {**_SOON_COMPACTED, _MARKERS_KEPT: "60000"}


_SIZES = (LARGEST_BATCH, "segment.bytes")
"""Settings that limit the size of a batch."""

BEATS_KEPT_MS = 3_600_000
"""The time for which beats are kept: of what is older nobody asks."""

NAMES_IN_SYNC = 2
"""Least number of replicas in sync of a topic of producers that has more."""

_FOR_EVER = {"retention.ms": "-1", "retention.bytes": "-1"}

_OUR_OWN = _SINCE_3_6.keys() | _BEFORE_3_6.keys() | _TIMES_KEPT.keys()


def positions_topic(naming: Naming, lanes: int, replication_factor: int) -> NewTopic:
    """The positions topic to make; it must have compaction, since it would forget positions otherwise."""
    return NewTopic(naming.positions_topic, lanes, replication_factor, _POSITIONS, frozenset({POLICY}))


def offsets_topic(naming: Naming, lanes: int, replication_factor: int) -> NewTopic:
    """The topic of the maps of offsets to make, which is compacted too."""
    return NewTopic(naming.offsets_topic, lanes, replication_factor, _POSITIONS, frozenset({POLICY}))


def global_topic(name: str, partitions: int, replication_factor: int, settings: Mapping[str, str]) -> NewTopic:
    """A T-global to make, given the settings of T; it is never compacted."""
    wanted = copied_configs(settings)
    if _COMPACTED in wanted.get(POLICY, ""):
        wanted = _uncompacted(wanted)
    return NewTopic(name, partitions, replication_factor, wanted, frozenset({POLICY} & wanted.keys()))


def kept_topic(
    name: str, partitions: int, replication_factor: int, settings: Mapping[str, str] | None = None
) -> NewTopic:
    """A topic of an order to make from which retention deletes nothing: a hidden log, or what is set aside."""
    wanted = copied_configs({**_FOR_EVER, POLICY: _DELETED, **(settings or {})})
    return NewTopic(name, partitions, replication_factor, wanted, frozenset(_FOR_EVER))


def beats_topic(name: str, replication_factor: int) -> NewTopic:
    """An order's topic of beats to make."""
    return NewTopic(name, 1, replication_factor, {POLICY: _DELETED, "retention.ms": str(BEATS_KEPT_MS)})


def registry_topic(replication_factor: int) -> NewTopic:
    """The registry of a destination cluster's links to make; the first link makes it."""
    return NewTopic(REGISTRY, 1, replication_factor, {POLICY: _COMPACTED}, frozenset({POLICY}))


def producers_topic(replication_factor: int) -> NewTopic:
    """The topic of producers of a cluster to make."""
    return NewTopic(PRODUCERS, 1, replication_factor, {POLICY: _COMPACTED}, frozenset({POLICY}))


def producers_changes(replicas: int) -> dict[str, str | None]:
    """Changes to a topic of producers with so many replicas: an acknowledged name must outlive a lost broker."""
    return {"min.insync.replicas": str(NAMES_IN_SYNC)} if replicas > NAMES_IN_SYNC else {}


def mirror_topic(name: str, replication_factor: int) -> NewTopic:
    """One of MirrorMaker 2's topics to make; its client reads those of checkpoints from the beginning each time."""
    return NewTopic(name, 1, replication_factor, _SOON_COMPACTED, frozenset({POLICY}))


def positions_changes(current: Settings) -> dict[str, str | None]:
    """Changes to a positions topic of an older release, which retention commit markers for a day."""
    retention = current.get(_MARKERS_KEPT)
    return {_MARKERS_KEPT: _POSITIONS[_MARKERS_KEPT]} if retention is not None and not retention.own else {}


def new_copies(
    topics: Sequence[Topic],
    set_at_source: Mapping[str, Mapping[str, str]],
    naming: Naming,
    replication_factor: int,
    keys: Collection[str] | None,
    *,
    compacts: bool = True,
) -> list[NewTopic]:
    """The copies to make of source topics, given the settings of each, and those that the destination knows.

    They keep everything in place of a compaction, unless the link ``compacts`` new copies.
    """
    return [
        _new_copy(topic, copied_configs(set_at_source.get(topic.name, {}), keys), naming, replication_factor, compacts)
        for topic in topics
        if topic.leaders
    ]


def _new_copy(
    topic: Topic, settings: Mapping[str, str], naming: Naming, replication_factor: int, compacts: bool
) -> NewTopic:
    """A copy that must not be made without its clean-up policy: it would lose records that its source keeps."""
    required = {POLICY}
    if not compacts and _COMPACTED in settings.get(POLICY, ""):
        settings = _uncompacted(settings)
        required |= {key for key, value in _FOR_EVER.items() if settings.get(key) == value}
    needed = frozenset(required & settings.keys())
    return NewTopic(naming.destination(topic.name), len(topic.leaders), replication_factor, settings, needed)


def copied_configs(set_at_source: Mapping[str, str], keys: Collection[str] | None = None) -> dict[str, str]:
    """The settings of a copy, given those to copy from its source topic, and those that the destination knows.

    While the latter are unknown (None), everything is requested, in old and new names.
    """
    times = _TIMES_KEPT | (_BEFORE_3_6 if keys is not None and not _SINCE_3_6.keys() & set(keys) else _SINCE_3_6)
    if keys is None:
        times |= _BEFORE_3_6
    wanted = times | _without_our_own(set_at_source)
    return {key: value for key, value in wanted.items() if keys is None or key in keys}


def unknown(set_at_source: Mapping[str, str], keys: Collection[str] | None) -> dict[str, str]:
    """Settings of a source topic that its copy lacks, as the destination does not know them; with the reasons."""
    wanted = _without_our_own(set_at_source)
    return {} if keys is None else {key: NOT_KNOWN for key in wanted if key not in keys}


def _without_our_own(set_at_source: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in set_at_source.items() if key not in _OUR_OWN}


def missed(refused: Mapping[str, str], kept: Collection[str]) -> dict[str, str]:
    """The refused settings that matter: not the old names for record times if the new ones are kept."""
    needless: set[str] = set()
    if _SINCE_3_6.keys() & set(kept):
        needless |= _BEFORE_3_6.keys()
    elif _BEFORE_3_6.keys() & set(kept):
        needless |= _SINCE_3_6.keys()
    return {key: why for key, why in refused.items() if key not in needless}


def own_configs(wanted: Mapping[str, str]) -> Configs:
    """The settings that the link sets on a copy, without those that every copy has."""
    return frozenset(_without_our_own(wanted).items())


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Settings to set (or with None to unset) on a copy, so that it follows its source; those ``left_out``, and why.

    ``own`` are then the link's. By ``early`` ones the copy refuses what its source took before: records without keys,
    or large batches.
    """

    settings: Mapping[str, str | None]
    left_out: Mapping[str, str]
    own: Configs
    early: frozenset[str]


def config_change(
    set_at_source: Mapping[str, str], on_copy: Settings, ours: Configs, waiting: Collection[str] = ()
) -> ConfigChange:
    """The change of a copy, given all settings that its broker lists, and the link's own; without those ``waiting``.

    Of settings that the source lacks, only the link's are unset. The operator's stay on the copy, and so does a larger
    max.message.bytes, which operators use to let an oversized record through.
    """
    current, writable = set_on(on_copy), {key for key, setting in on_copy.items() if not setting.read_only}
    wanted = copied_configs(set_at_source, writable)
    others = {key for key, value in current.items() if key not in wanted and (key, value) not in ours}
    now = {key: value for key, value in wanted.items() if key == POLICY or key not in waiting}
    now = _uncompacted(now, others) if POLICY in waiting else now
    changes: dict[str, str | None] = {
        key: value
        for key, value in now.items()
        if current.get(key) != value and not _larger(key, current.get(key), value)
    }
    changes |= dict.fromkeys(current.keys() - now.keys() - others - {*waiting})
    left_out = unknown(set_at_source, writable) | dict.fromkeys(waiting, NOT_YET)
    early = frozenset(key for key, value in changes.items() if _is_early(key, value, on_copy))
    return ConfigChange(changes, left_out, own_configs(now) | (ours & current.items()), early)


def _is_early(key: str, value: str | None, on_copy: Settings) -> bool:
    current = (on_copy[key].value if key in on_copy else None) or ""
    if key == POLICY:
        return _COMPACTED in (value or "") and _COMPACTED not in current
    return key in _SIZES and (value is None or int(value) < int(current or 0))


def _uncompacted(wanted: Mapping[str, str], others: Collection[str] = ()) -> dict[str, str]:
    """The settings while a compaction waits: instead all records stay, unless the source or somebody on the copy, by
    one of the ``others``, deletes them.
    """
    deletes = _DELETED in wanted[POLICY]
    stays = {key: value for key, value in _FOR_EVER.items() if not deletes and key not in others}
    return {**wanted, **stays, POLICY: _DELETED}


def stays(setting: tuple[str, str]) -> bool:
    """True of a setting by which a copy keeps all records while a compaction waits: it is no setting of its source."""
    return setting in _FOR_EVER.items()


def _larger(key: str, current: str | None, wanted: str) -> bool:
    return key == LARGEST_BATCH and int(current or 0) > int(wanted)


def log_fields(left_out: Mapping[str, Mapping[str, str]]) -> dict[str, object]:
    """The fields of one log line about settings left out, given the reasons by topic and setting."""
    whys = {key: why for causes in left_out.values() for key, why in causes.items()}
    topic: object = next(iter(left_out)) if len(left_out) == 1 else len(left_out)
    cause = "; ".join(f"{key}: {why}" for key, why in sorted(whys.items()))
    return {"topic" if len(left_out) == 1 else "topics": topic, "settings": sorted(whys), "cause": cause}
