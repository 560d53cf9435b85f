"""Ending a change of a link's layout that a replicator has left unfinished.

Older releases changed the layout by themselves; the record of such a change names its run. An operator's change is
ended by the operator, who is there. For a replicator's nobody is: the next start ends it, with the layout as it was.
"""

import logging
import socket
import uuid
from collections.abc import Sequence
from dataclasses import replace

from appliance.clock import now_ms
from appliance.driver.layout_writer import LanesWriter, link_of
from appliance.kafka.client.interface import Cluster
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.lane_moves import decided, misplaced_segments, next_number
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.naming import Naming

log = logging.getLogger("appliance.replicator")

_WHY = "a replicator has left its change unfinished"


def is_left_by_a_replicator(checkpoints: Sequence[LaneCheckpoint]) -> bool:
    """True when a replicator has begun a change that has not ended."""
    return any(each.layout is not None and each.layout.changing and each.layout.run for each in checkpoints)


async def end_unfinished(destination: Cluster, naming: Naming, timeout: float) -> None:
    """End such a change; one that a command has begun meanwhile is left alone. After a kill anywhere, the same again.

    Raises:
        Fenced: a command, or another start, does something about it.
        LinkRefused: the link record is gone.
    """
    writer = LanesWriter(destination, naming, timeout, uuid.uuid4().hex)
    await writer.take_id()
    await writer.peek()
    checkpoints = await writer.fence()
    if not is_left_by_a_replicator(checkpoints):
        return
    link = link_of(checkpoints)
    layout = replace(link.layout, number=next_number(checkpoints, link))
    await writer.write_segments(misplaced_segments(await writer.segments(), layout, now_ms()))
    record = LayoutRecord(layout.number, layout.lanes, now_ms(), f"{naming.replicator}@{socket.gethostname()}", _WHY)
    kept = link.laid_out(layout, len(checkpoints))
    await writer.write(decided(checkpoints, kept, record, writer.owner(), record.since))
    await writer.take_id()  # a commit is answered before its markers are written, and a new epoch after that
    log.info("lanes kept", extra={"fields": {"lanes": layout.lanes, "why": _WHY}})
