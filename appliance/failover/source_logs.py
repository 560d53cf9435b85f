"""The current ends of the source's logs, with short timeouts: it may be dead."""

import asyncio

from appliance.errors import ApplianceError
from appliance.failover.model.loss import SourceLogs
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import discover

_PATIENCE = 5.0
"""Timeout of each cluster for its topics, and then for their ends, in seconds."""


async def source_logs(source: Cluster, destination: Cluster, naming: Naming) -> SourceLogs:
    """The starts and ends of the logs of all copied topics.

    Raises:
        ApplianceError: a cluster does not answer. A silent broker affects only its own partitions.
    """
    metadata = await source.metadata(None)
    topics = [topic for topic in metadata.topics.values() if naming.copies(topic.name, topic.internal)]
    partitions = tuple((topic.name, number) for topic in topics for number in range(len(topic.leaders)))
    starts, _ = await try_offsets(source, metadata, partitions, Bound.START)
    ends, _ = await try_offsets(source, metadata, partitions, Bound.END)
    unfit = discover(metadata, await destination.metadata(None), naming).unfit
    return SourceLogs({topic.name: topic.id for topic in topics}, starts, ends, partitions, unfit)


async def try_source_logs(source: Cluster, destination: Cluster, naming: Naming) -> SourceLogs | None:
    """The same; None if the source does not answer within a few seconds."""
    try:
        async with asyncio.timeout(_PATIENCE):
            return await source_logs(source, destination, naming)
    except (ApplianceError, TimeoutError):
        return None
