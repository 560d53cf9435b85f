"""Requests to all leaders at once, and many requests to one broker at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

from kio.static.protocol import RequestPayload

from appliance.errors import ApplianceError, BrokerBusy
from appliance.grouping import grouped
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition
from appliance.kafka.protocol.older import exchange
from appliance.kafka.protocol.wire import Response

Key = TypeVar("Key")

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


async def pipeline(
    broker: Connection, requests: Iterable[tuple[Key, RequestPayload]], response_type: type[Response]
) -> AsyncIterator[tuple[Key, Response]]:
    """Send all requests, each drawn right before it is sent, and give each answer as it comes."""
    answers = [(key, await broker.send(exchange(broker.offered, request, response_type))) for key, request in requests]
    for key, answering in answers:
        yield key, await answering
