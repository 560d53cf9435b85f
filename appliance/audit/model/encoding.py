"""The audit's state as text, which each file holds in its metadata. Pure."""

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Any
from uuid import UUID

from appliance.audit.model.rows import RowEnd
from appliance.audit.model.state import NO_PRODUCER, AuditState, LaneProgress
from appliance.errors import PeerError, said
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.decompression import inflate

_VERSION = 1

_END_KNOWN = -1
"""A field of older releases, the offset up to which a log is read again; before it, the producer up to which it was."""

_OLDEST: tuple[Any, ...] = None, 0, NO_PRODUCER, _END_KNOWN, -1, (0, *NO_PRODUCER), 0, -1
"""The last fields of a lane, where the release had none of them."""

_BEYOND = 2**62
"""An offset that no log has: the audit finds a lane truncated that it had read up to there."""


def encode_state(state: AuditState) -> bytes:
    """The state as text, for a file's metadata."""
    whole = {
        "version": _VERSION,
        "topic_id": state.topic_id.hex,
        "beginning": state.beginning,
        "lanes": [_lane_fields(lane, progress) for lane, progress in state.lanes.items()],
        "partitions": [[*partition, *_fields(end)] for partition, end in state.partitions.items()],
        "again": [[*partition, None, True] for partition, end in state.partitions.items() if end.is_lost],
    }
    return base64.b64encode(zlib.compress(json.dumps(whole, separators=(",", ":")).encode(), 1))


def _lane_fields(lane: int, progress: LaneProgress) -> Iterable[object]:
    read_to, hole_at, producer, run, layout, *rest = astuple(progress)
    return [lane, read_to, hole_at, *producer, run, layout, producer, _END_KNOWN, *rest]


def _fields(end: RowEnd) -> Iterable[object]:
    return [*end._replace(source_id=end.source_id.hex, destination_id=end.destination_id.hex)][:-1]  # type: ignore[arg-type]


def decode_state(text: bytes) -> AuditState:
    """Decode a state; PeerError if it is damaged, or a newer release's."""
    try:
        whole = json.loads(inflate(base64.b64decode(text, validate=True)))
        if whole["version"] != _VERSION:
            raise PeerError(f"the audit table was written by a newer release: its state has version {whole['version']}")
        starts = {lane: rest for lane, *rest in whole.get("starts", ())}
        lanes = {lane: _lane(rest, starts.get(lane)) for lane, *rest in whole["lanes"]}
        lost = {(topic, number) for topic, number, *_ in whole.get("again", ())}
        partitions = {
            Partition(topic, number): _row_end(rest, (topic, number) in lost)
            for topic, number, *rest in whole["partitions"]
        }
        return AuditState(UUID(whole["topic_id"]), lanes, partitions, whole["beginning"])
    except (ValueError, LookupError, TypeError, zlib.error) as error:
        raise PeerError(f"the audit table's state is damaged: {said(error)}") from error


def _lane(fields: Sequence[Any], starts: Sequence[Any] | None) -> LaneProgress:
    """A lane. Older releases have read a truncated log again: it counts as just truncated."""
    read_to, hole_at, id_, epoch, *rest = fields
    if starts is not None:
        _, again, cut, _, *others = starts
        read_to, rest = _BEYOND if cut and read_to < again else read_to, [*rest, *others]
    run, layout, _, _, leader_epoch, coming, waits_for, layout_at = *rest, *_OLDEST[len(rest) :]
    return LaneProgress(read_to, hole_at, (id_, epoch), run, layout, leader_epoch, tuple(coming), waits_for, layout_at)


def _row_end(fields: Sequence[Any], is_lost: bool) -> RowEnd:
    lane, offset, source, copy, *rest = fields
    return RowEnd(lane, offset, UUID(source), UUID(copy), *rest)._replace(is_lost=is_lost)
