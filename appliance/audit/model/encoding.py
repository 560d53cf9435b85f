"""The audit's state as text, which each file holds in its metadata. Pure."""

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from appliance.audit.model.rows import Known
from appliance.audit.model.starts import NO_PRODUCER, Starts
from appliance.audit.model.state import AuditState, LaneKnown, Unsettled
from appliance.errors import PeerError, said
from appliance.kafka.records.decompression import inflate

_VERSION = 1

_END_KNOWN = -1
"""A field of older releases, the offset up to which a log is read again."""


def encode_state(state: AuditState) -> bytes:
    """The state as text, for a file's metadata."""
    lanes = [
        [lane, known.read_to, known.hole_at, *known.producer, known.run, known.layout, known.starts.latest, _END_KNOWN]
        for lane, known in state.lanes.items()
    ]
    starts = [
        [
            *(lane, _starts(known.starts), known.again, known.cut and _starts(known.cut), known.mark),
            *(known.leader_epoch, known.coming, known.waits_for, known.layout_at),
        ]
        for lane, known in state.lanes.items()
    ]
    whole = {
        "version": _VERSION,
        "topic_id": state.topic_id.hex,
        "beginning": state.beginning,
        "lanes": lanes,
        "partitions": [[*partition, *_known(known)] for partition, known in state.partitions.items()],
        "starts": starts,
        "again": [
            [*partition, each.found and _known(each.found), each.is_unknown] for partition, each in state.again.items()
        ],
    }
    return base64.b64encode(zlib.compress(json.dumps(whole, separators=(",", ":")).encode(), 1))


def _known(known: Known) -> Iterable[object]:
    return [*known._replace(source_id=known.source_id.hex, destination_id=known.destination_id.hex)]  # type: ignore[arg-type]


def _starts(starts: Starts) -> list[object]:
    return [starts.epochs, starts.newest, starts.floor]


def decode_state(text: bytes) -> AuditState:
    """Decode a state.

    Raises:
        PeerError: it is damaged, or a newer release's.
    """
    try:
        whole = json.loads(inflate(base64.b64decode(text, validate=True)))
        if whole["version"] != _VERSION:
            raise PeerError(f"the audit table was written by a newer release: its state has version {whole['version']}")
        starts = {lane: rest for lane, *rest in whole.get("starts", ())}
        lanes = {lane: _lane(rest, starts.get(lane)) for lane, *rest in whole["lanes"]}
        partitions = {(topic, number): _known_of(rest) for topic, number, *rest in whole["partitions"]}
        again = {
            (topic, number): Unsettled(found and _known_of(found), is_unknown)
            for topic, number, found, is_unknown in whole.get("again", ())
        }
        return AuditState(UUID(whole["topic_id"]), lanes, partitions, whole["beginning"], again)
    except (ValueError, LookupError, TypeError, zlib.error) as error:
        raise PeerError(f"the audit table's state is damaged: {said(error)}") from error


def _lane(fields: Sequence[Any], starts: Sequence[Any] | None) -> LaneKnown:
    """A lane; older releases have none of its starts, the oldest not even the newest one."""
    read_to, hole_at, id_, epoch, *rest = fields
    run, layout, mark = (*rest, *(None, 0, NO_PRODUCER)[len(rest) :])[:3]
    known = LaneKnown(read_to, hole_at, (id_, epoch), run, layout, Starts(floor=max(tuple(mark), (id_, epoch))))
    if starts is None:
        return known
    own, again, cut, mark, leader_epoch, *waiting = starts
    known = replace(known, starts=_starts_of(own), again=again, cut=cut and _starts_of(cut))
    known = replace(known, mark=tuple(mark), leader_epoch=leader_epoch)
    return replace(known, coming=tuple(waiting[0]), waits_for=waiting[1], layout_at=waiting[2]) if waiting else known


def _starts_of(fields: Sequence[Any]) -> Starts:
    epochs, newest, floor = fields
    return Starts(tuple((id_, epoch) for id_, epoch in epochs), newest, (floor[0], floor[1]))


def _known_of(fields: Sequence[Any]) -> Known:
    lane, offset, source, copy, *rest = fields
    return Known(lane, offset, UUID(source), UUID(copy), *rest)
