"""The records that change a link's layout: every position, gap and state to its lane in the new one. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.model.checkpoint import LaneCheckpoint, LinkRecord, Owner
from appliance.link.model.checkpoint_records import (
    encode_gap,
    encode_gap_tombstone,
    encode_layout,
    encode_link,
    encode_owner,
    encode_position,
    encode_sql,
    encode_state,
    encode_tombstone,
)
from appliance.link.model.layout import Layout, LayoutRecord
from appliance.link.model.link_sql import SqlChange, newest_change
from appliance.link.model.offset_records import SegmentKey, encode_dropped

Segments = Mapping[SegmentKey, Record]
"""The segments of a lane's partition of the topic of the maps, the last written one last."""


def moving(checkpoints: Sequence[LaneCheckpoint], layout: Layout) -> dict[Partition, int]:
    """The source partitions whose positions lie in another lane than that of the layout, each with its lane there."""
    places = ((lane, key) for lane, checkpoint in enumerate(checkpoints) for key in checkpoint.positions)
    return {key: target for lane, key in places if (target := layout.lane_of(*key)) != lane}


def next_number(checkpoints: Sequence[LaneCheckpoint], link: LinkRecord) -> int:
    """The number of the link's next layout, which none has ever had.

    Where the first lane's partition has lost its end, the others still tell of a layout that its record does not.
    """
    records = [each.layout for each in checkpoints if each.layout]
    return 1 + max([link.number, *(each.number - each.changing for each in records)])


def announcement(lanes: int, record: LayoutRecord, owner: Owner) -> dict[int, list[Record]]:
    """The records by which no lane may write from its next start on, by lane; the operator's name makes it start."""
    now = record.since
    return {lane: [encode_layout(lane, record, now), encode_owner(lane, owner, now)] for lane in range(lanes)}


def layout_records(
    checkpoints: Sequence[LaneCheckpoint], link: LinkRecord, record: LayoutRecord, owner: Owner, now: int
) -> dict[int, list[Record]]:
    """The records of the new layout, that of ``link``, by lane; they hold only together, in one transaction.

    ``checkpoints`` are those of all partitions of the positions topic, whose lanes were fenced.
    """
    layout = link.layout
    records: dict[int, list[Record]] = {lane: [] for lane in range(len(checkpoints))}
    for lane, checkpoint in enumerate(checkpoints):
        for partition, position in checkpoint.positions.items():
            if (target := layout.lane_of(*partition)) != lane:
                records[target].append(encode_position(partition, position, now))
                records[lane].append(encode_tombstone(partition, now))
        for gap in checkpoint.gaps.values():
            if (target := layout.lane_of(*gap.partition)) != lane:
                records[target].append(encode_gap(gap, now))
                records[lane].append(encode_gap_tombstone(gap, now))
    states = checkpoints[0].states
    for lane, of_lane in enumerate(checkpoints):
        if lane < layout.lanes:
            changed = [state for topic, state in states.items() if of_lane.states.get(topic) != state]
            records[lane] += [encode_state(state, state.since) for state in changed]
        records[lane] += [encode_layout(lane, record, now), encode_owner(lane, owner, now)]
    for lane, change in _sql(checkpoints, layout):
        records[lane].append(encode_sql(change, now))
    records[0].append(encode_link(link, now))
    return records


def _sql(checkpoints: Sequence[LaneCheckpoint], layout: Layout) -> Iterator[tuple[int, SqlChange]]:
    """The newest change of the link's SQL, for the lanes without it, and for partitions from such lanes.

    Those will be copied by it from their positions on; all others have it already where they were.
    """
    newest = newest_change(change for checkpoint in checkpoints for change in checkpoint.sql.values())
    if newest is None:
        return
    last = [newest_change(checkpoint.sql.values()) for checkpoint in checkpoints]
    without = {lane for lane, change in enumerate(last) if change is None or change.sql != newest.sql}
    begun: dict[int, dict[Partition, int]] = {lane: {} for lane in range(layout.lanes)}
    for lane in without:
        for partition, position in checkpoints[lane].positions.items():
            begun[layout.lane_of(*partition)][partition] = position.next_offset
    for lane, offsets in begun.items():
        if lane in without or offsets:
            latest = checkpoints[lane].sql.get((newest.sql.number, newest.run))
            yield lane, replace(newest, offsets={**offsets, **(latest.offsets if latest else {})})


def segments_in(segments: Sequence[Segments], layout: Layout) -> list[Segments]:
    """The segments that lie in their lanes of the layout, without what an earlier change has left elsewhere."""
    return [
        {key: record for key, record in own.items() if layout.lane_of(*key[0]) == lane}
        for lane, own in enumerate(segments)
    ]


def moved_segments(segments: Sequence[Segments], layout: Layout) -> dict[int, list[Record]]:
    """The segments to write again in their lanes of the layout, in their order; later ones cut earlier ones."""
    records: dict[int, list[Record]] = {}
    for lane, own in enumerate(segments):
        for (partition, _), record in own.items():
            if (target := layout.lane_of(*partition)) != lane:
                records.setdefault(target, []).append(record)
    return records


def misplaced_segments(segments: Sequence[Segments], layout: Layout, now: int) -> dict[int, list[Record]]:
    """The records that delete the segments outside their lanes of the layout: they would hold again after a return."""
    records: dict[int, list[Record]] = {}
    for lane, own in enumerate(segments):
        dropped = [encode_dropped(key, now) for key in own if layout.lane_of(*key[0]) != lane]
        if dropped:
            records[lane] = dropped
    return records
