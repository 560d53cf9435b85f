"""Partitions grouped as requests go: by the broker that leads them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from appliance.errors import ApplianceError, BrokerBusy
from appliance.grouping import grouped
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition

Ask = Callable[[Connection, list[Partition]], Awaitable[None]]
"""Asks one leader about the partitions that it leads."""


async def ask_leaders(
    cluster: Cluster, metadata: Metadata, partitions: Iterable[Partition], ask: Ask, purpose: str = "control"
) -> dict[Partition, ApplianceError]:
    """Ask all leaders at once; the errors of missing or silent ones, by partition."""
    led = grouped((metadata.leader(*partition), partition) for partition in partitions)
    failures: dict[Partition, ApplianceError] = {}

    async def ask_one(leader: int) -> None:
        try:
            await ask(await cluster.broker(leader, purpose), led[leader])
        except ApplianceError as error:
            failures.update(dict.fromkeys(led[leader], error))

    for partition in led.pop(NOBODY, ()):
        text = f"{partition} of the {cluster.side} cluster has no leader now"
        failures[partition] = BrokerBusy(text, "LEADER_NOT_AVAILABLE")
    await asyncio.gather(*map(ask_one, led))
    return failures
