"""The check of a link against its positions topic as it is now (invariant H). Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from appliance.kafka.protocol.metadata import NOWHERE, Partition, Topic
from appliance.link.model.checkpoint import LaneCheckpoint, LinkRecord
from appliance.link.model.claims import Claim, Copy
from appliance.link.model.layout import Layout
from appliance.link.model.link_sql import SqlChange
from appliance.link.model.naming import PRODUCERS, Naming
from appliance.link.model.position import Position
from appliance.timestamps import utc

ADOPT = "`appliance resume --adopt-positions`"
_CHANGE = "kafka-configs.sh --alter"
_COMPACT = "compact"


@dataclass(frozen=True, slots=True)
class PositionsTopic:
    """The current positions topic: its name, its effective ``cleanup.policy``, the content of each partition."""

    name: str
    policy: str
    checkpoints: Sequence[LaneCheckpoint]

    @property
    def link(self) -> LinkRecord | None:
        """The link as it was made; None if there is no record of that."""
        return self.checkpoints[0].link if self.checkpoints else None

    @property
    def layout(self) -> Layout:
        """The link's layout; without a record, the number of lanes that puts the most positions in their places."""
        if self.link:
            return self.link.layout
        record = self.checkpoints[0].layout if self.checkpoints else None
        number = record.number if record else 0
        layouts = (Layout(lanes, number) for lanes in range(len(self.checkpoints), 0, -1))
        return min(layouts, key=lambda layout: len(list(self.misplaced_positions(layout))), default=Layout(0))

    @property
    def positions(self) -> Mapping[Partition, Position]:
        """The position of each source partition."""
        return {key: position for each in self.checkpoints for key, position in each.positions.items()}

    @property
    def lanes(self) -> int:
        """Number of the link's lanes."""
        return self.layout.lanes

    @property
    def generation(self) -> int:
        """The generation of the link's next run: after all names in the lanes; the first is 1."""
        return 1 + max((checkpoint.owner.generation for checkpoint in self.checkpoints if checkpoint.owner), default=0)

    @property
    def sql_changes(self) -> list[SqlChange]:
        """The changes of the link's SQL, in every lane."""
        return [change for checkpoint in self.checkpoints for change in checkpoint.sql.values()]

    @property
    def is_new(self) -> bool:
        """True when only owners' names were ever written to it."""
        return not any(checkpoint.positions or checkpoint.gaps or checkpoint.link for checkpoint in self.checkpoints)

    def misplaced_positions(self, layout: Layout) -> Iterator[tuple[int, Partition]]:
        """The positions outside their lane's partition, each with its actual partition."""
        for lane, checkpoint in enumerate(self.checkpoints):
            yield from ((lane, key) for key in checkpoint.positions if layout.lane_of(*key) != lane)


def policy_fault(topic: str, policy: str) -> str:
    """The fault of a topic of ours that may lose its records; empty if it is compacted, or the policy is unknown."""
    if policy in ("", _COMPACT):
        return ""
    change = f"{_CHANGE} --topic {topic} --add-config cleanup.policy={_COMPACT}"
    return f"{topic} has cleanup.policy={policy}: what it remembers would be deleted; make it compacted: {change}"


def never_ran(positions: str) -> str:
    """The fault of a link without a positions topic of this name."""
    return f"there is no {positions}: no replicator of this link has ever run"


def was_deleted(link: str, deletion: Claim) -> str:
    """The fault of a deleted link, which no later replicator may recreate."""
    why = f" ({deletion.why})" if deletion.why else ""
    at = utc(deletion.since / 1000)
    return (
        f"{link} was deleted by {deletion.deleted_by} at {at}{why}, and copies nothing any more: {ADOPT} makes it "
        "anew, and each copy that is not empty then waits for `appliance resume --topic-name ... --from ...`"
    )


def link_fault(topic: PositionsTopic, source_cluster: str, own_copies: Collection[Copy], naming: Naming) -> str:
    """The reason that the link must not continue, with the command that helps; empty when it may.

    ``source_cluster`` is the id of the source cluster that answers now, ``own_copies`` are the link's copies in the
    registry.
    """
    faults = (
        policy_fault(topic.name, topic.policy),
        layout_fault(topic),
        _loss_fault(topic, own_copies),
        _size_fault(topic),
        cluster_fault(topic.link, source_cluster),
        _place_fault(topic),
        _naming_fault(topic, own_copies, naming),
    )
    return next((fault for fault in faults if fault), "")


def unfit_for_a_change(topic: PositionsTopic, own_copies: Collection[Copy], naming: Naming) -> str:
    """The reason that the link's layout cannot be changed, with the command that helps; empty when it can.

    A change that was killed may have grown the topic, or not be shown whole yet.
    """
    if fault := _loss_fault(topic, own_copies):
        return fault
    if topic.link is None:
        return f"{topic.name} has no record of the link: start its replicator once, it writes that"
    whole = "" if layout_fault(topic) else _size_fault(topic) or _place_fault(topic)
    return whole or _naming_fault(topic, own_copies, naming)


def _loss_fault(topic: PositionsTopic, own_copies: Collection[Copy]) -> str:
    if not (topic.is_new and own_copies):
        return ""
    first, _ = min(own_copies)
    return (
        f"{topic.name} was deleted or made anew: it remembers nothing, and {len(own_copies)} copies of this link are "
        f"there, {first} for example; {ADOPT} makes the link anew, and each copy that is not empty then waits for "
        "`appliance resume --topic-name ... --from ...`"
    )


def layout_fault(topic: PositionsTopic) -> str:
    """The fault of a link whose layout is being changed, or was just changed and is not shown whole yet.

    One whose record the first lane's partition has lost gets another record first.
    """
    layout = topic.layout
    for lane, checkpoint in enumerate(topic.checkpoints):
        record = checkpoint.layout
        if record is not None and record.changing:
            at = utc(record.since / 1000)
            killed = "its replicator was killed, the next one ends it, or" if record.run else "that command was killed,"
            return (
                f"the lanes of the link are being changed, by {record.by} since {at}: nothing is copied meanwhile; "
                f"if {killed} `appliance lanes --set {record.lanes}` ends it"
            )
        due = layout.number if record or lane < layout.lanes else 0
        if topic.link and not checkpoint.allows(due):
            number = record.number if record else 0
            return (
                f"{topic.name}-{lane} is of the link's layout {number}, not {due}: if that lasts, `appliance lanes "
                f"--set {layout.lanes}` writes it again"
            )
    return ""


def _size_fault(topic: PositionsTopic) -> str:
    link, size = topic.link, len(topic.checkpoints)
    if link is None or link.partitions == size:
        return ""
    return (
        f"{topic.name} has {size} partitions, and had {link.partitions} when the link was made: {ADOPT} goes on with "
        f"{link.lanes} lanes, and leaves the other partitions empty"
    )


def cluster_fault(link: LinkRecord | None, source_cluster: str) -> str:
    """The fault of a source cluster other than the one with which the link was made; empty if none."""
    if link is None or not link.source_cluster or not source_cluster or link.source_cluster == source_cluster:
        return ""
    return (
        f"the link was made with source cluster {link.source_cluster}; SOURCE_BROKER_SERVERS lead to {source_cluster}: "
        f"give that one a SOURCE_CLUSTER_ID of its own; where it is the same cluster, made anew: {ADOPT}"
    )


def producers_fault(link: LinkRecord | None, topic: Topic | None, naming: Naming) -> str:
    """The fault of a source whose topic of producers is not the one that the link knows; empty if none."""
    if not naming.sharing.tells_origins or link is None:
        return ""
    if topic is not None and topic.id.hex == link.producers:
        return ""
    what = "was made with another naming" if not link.producers else "knew another one"
    return (
        f"{PRODUCERS} of the source {'is missing' if topic is None else 'was made anew'}, and the link {what}: what "
        "other links wrote there can no longer be told from what its producers wrote; restart the links into that "
        f"cluster, so that they leave their names again, and then {ADOPT}"
    )


def _place_fault(topic: PositionsTopic) -> str:
    layout = topic.layout
    for lane, partition in topic.misplaced_positions(layout):
        return (
            f"{topic.name}-{lane} holds the position of {partition}, which belongs into partition "
            f"{layout.lane_of(*partition)}: the topic was grown, or somebody has written to it; {ADOPT} "
            "keeps the positions that are in their places, and forgets the others"
        )
    return ""


def _naming_fault(topic: PositionsTopic, own_copies: Collection[Copy], naming: Naming) -> str:
    """The fault of settings that would copy every topic again, beside its existing copy."""
    names = {topic_id: name for name, topic_id in own_copies if topic_id != NOWHERE}
    called = {
        key[0]: names[position.destination_id]
        for checkpoint in topic.checkpoints
        for key, position in checkpoint.positions.items()
        if position.destination_id in names
    }
    renamed = naming.policy.renamed(called)
    if not renamed:
        return ""
    source, copy = min(renamed.items())
    chosen = naming.policy.topics is None or source in naming.policy.topics
    gone = f"{source} is no topic of {naming.choice} any more"
    now = f"would now be {naming.destination(source)}" if chosen else gone
    return (
        f"the copy of {source} is called {copy} in this link, and {now}: put "
        "REPLICA_TOPICS_NAMING and the settings of that naming back; copies with other names "
        "are another link's, which has another SOURCE_CLUSTER_ID"
    )
