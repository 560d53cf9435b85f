"""Both logs of all copied partitions now, with short timeouts at the source: it may be dead."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from appliance.commands.model.loss import BothLogs
from appliance.commands.run.operation import Operation
from appliance.errors import ApplianceError
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.link.client.log_ends import EpochEnds, copy_logs, log_ends
from appliance.link.model.agreement import SourceLog
from appliance.link.model.position import Position
from appliance.link.model.replicas import discover

_PATIENCE = 5.0
"""Timeout of the source for its topics, and then for their ends, in seconds."""


async def both_logs(operation: Operation, positions: Mapping[Partition, Position], *, needed: bool = True) -> BothLogs:
    """The logs of all copied topics, and of the copies with these positions.

    Unless it is ``needed``, a source that does not answer within a few seconds is left out.
    """
    destination, naming = operation.destination, operation.naming
    there = await destination.metadata(None)
    try:
        async with asyncio.timeout(None if needed else _PATIENCE):
            logs = await _at_source(operation, there, positions)
    except (ApplianceError, TimeoutError):
        if needed:
            raise
        logs = BothLogs(answers=False)
    return replace(logs, copies=await copy_logs(EpochEnds(destination), there, naming, positions))


async def _at_source(operation: Operation, there: Metadata, positions: Mapping[Partition, Position]) -> BothLogs:
    source, naming = operation.source, operation.naming
    metadata = await source.metadata(None)
    ids = {topic.name: topic.id for topic in naming.copied(metadata.topics)}
    partitions = [partition for name in ids for partition in metadata.topics[name].partitions]
    starts, _ = await try_offsets(source, metadata, partitions, Bound.START)
    ends = await log_ends(source, metadata, partitions)
    epochs = {key: positions[key].leader_epoch for key in ends if key in positions}
    epochs_end, unknown = await EpochEnds(source).read(metadata, epochs, epochs)
    logs = {}
    for key in partitions:
        end = None if key in unknown else ends.get(key)
        logs[key] = SourceLog(ids[key.topic], end, metadata.leader_epoch(*key), epochs_end.get(key))
    return BothLogs(ids, starts, logs, discover(metadata, there, naming).unfit)
