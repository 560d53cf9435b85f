"""Translation of offsets between a source cluster and its copies, for your own programs.

Only the destination cluster is asked, so that it works while the source is dead::

    from appliance.client import OffsetTranslator, Settings, read_settings

    async with OffsetTranslator(read_settings("setenv.sh")) as translator:
        found = await translator.translate("orders", 3, 1_234_567)
        if found.offset is not None:
            consumer.seek(TopicPartition("orders.copy", 3, found.offset))

Without asyncio: ``translate(settings, "orders", 3, 1_234_567)``, and ``reverse`` likewise.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.clusters import destination_cluster
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.naming import Naming
from appliance.link.model.translation import Translation, TranslationState
from appliance.settings import env_file
from appliance.settings.role import Role
from appliance.settings.values import Settings

__all__ = ["OffsetTranslator", "Settings", "Translation", "TranslationState", "read_settings", "reverse", "translate"]


def read_settings(path: str | Path = "setenv.sh") -> Settings:
    """The settings of a link; variables of the process environment win.

    Raises:
        appliance.errors.SettingsError: something is missing or wrong in them.
    """
    return env_file.read_settings(Path(path), Role.REPLICATOR, os.environ)


class OffsetTranslator:
    """The maps of offsets of one link, kept open: an asynchronous context manager."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open = AsyncExitStack()
        self._maps: OffsetMaps | None = None
        self._asked: set[Partition] = set()

    async def __aenter__(self) -> Self:
        cluster = await self._open.enter_async_context(destination_cluster(self._settings))
        self._maps = OffsetMaps(cluster, Naming.of(self._settings))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def translate(self, topic: str, partition: int, offset: int) -> Translation:
        """The offset of the copy at which a consumer continues that has read a source partition up to ``offset``.

        Raises:
            appliance.errors.ApplianceError: the destination does not answer, or refuses.
        """
        maps = await self._refreshed([source := Partition(topic, partition)])
        _require(maps, source)
        return maps.translate(source, offset)

    async def reverse(self, copy: str, partition: int, offset: int) -> Translation:
        """The source offset at which a consumer continues that has read a copy, by its own name, up to ``offset``.

        Raises:
            appliance.errors.ApplianceError: the destination does not answer, or refuses.
        """
        maps = await self._refreshed([])
        if source := maps.copies().get(Partition(copy, partition)):
            await self._refreshed([source])
            _require(maps, source)
        return maps.reverse(Partition(copy, partition), offset)

    async def _refreshed(self, partitions: Iterable[Partition]) -> OffsetMaps:
        """The maps, with those of these partitions and of all that were asked for before."""
        if self._maps is None:
            raise RuntimeError("an OffsetTranslator is used within `async with`")
        self._asked.update(partitions)
        await self._maps.refresh(self._asked)
        return self._maps


def _require(maps: OffsetMaps, partition: Partition) -> None:
    if error := maps.failure(partition):
        raise error


def translate(settings: Settings, topic: str, partition: int, offset: int) -> Translation:
    """As ``OffsetTranslator.translate``, once, in a program without an event loop."""
    return asyncio.run(_once(settings, lambda translator: translator.translate(topic, partition, offset)))


def reverse(settings: Settings, copy: str, partition: int, offset: int) -> Translation:
    """As ``OffsetTranslator.reverse``, once, in a program without an event loop."""
    return asyncio.run(_once(settings, lambda translator: translator.reverse(copy, partition, offset)))


async def _once(settings: Settings, ask: Callable[[OffsetTranslator], Awaitable[Translation]]) -> Translation:
    async with OffsetTranslator(settings) as translator:
        return await ask(translator)
