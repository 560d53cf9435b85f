"""``appliance order origin``: the record of T behind one of T-global, and where T-global has a record of T."""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from appliance.errors import ApplianceError, SettingsError
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.offset_map import exact
from appliance.link.model.order import Origin
from appliance.link.model.translation import Translation, TranslationState, not_known
from appliance.order.handle import OrderHandle
from appliance.output import say_rows
from appliance.runtime.command import Command, add_json, until_stopped, with_settings_by
from appliance.settings.env_file import read_order
from appliance.settings.order_values import OrderSettings
from appliance.settings.role import Role


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the answer: an offset in one cluster, and where the same record lies, if known."""

    cluster: str
    topic: str
    partition: int
    offset: int
    to_cluster: str
    to_topic: str
    to_partition: int | None
    to_offset: int | None
    state: TranslationState
    behind: int
    reason: str

    def __str__(self) -> str:
        where = f"{self.topic}-{self.partition} of {self.cluster} offset {self.offset:,}"
        if self.state is TranslationState.EXACT:
            return f"{where} is {self.to_topic}-{self.to_partition} of {self.to_cluster} offset {self.to_offset:,}"
        if self.state is TranslationState.AHEAD:
            return f"{where} is past what is in the order{f' of {self.to_cluster}' if self.to_cluster else ''}"
        return (
            f"{where} is unknown{f' at {self.to_cluster}' if self.to_cluster else ''}: {self.reason or 'no map of it'}"
        )


async def origin(settings: OrderSettings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    """Print the translations; the exit code is 0 when all are exact."""
    unknown = {parsed.cluster, parsed.origin} - {None, *(each.id for each in settings.clusters)}
    if unknown:
        raise SettingsError([f"{', '.join(unknown)}: expected one of the ids in GLOBAL_CLUSTERS"])
    own = parsed.cluster or settings.cluster
    async with OrderHandle.open(settings) as order:
        lines = await (_shown(order, parsed) if parsed.origin else _origin(order, own, parsed))
    say_rows(lines, as_json=parsed.json)
    return 0 if all(line.state is TranslationState.EXACT for line in lines) else 1


async def _origin(order: OrderHandle, cluster: str, parsed: argparse.Namespace) -> Sequence[Line]:
    """The origin of the record at an offset of a cluster's T-global."""
    maps, sources = await order.maps(cluster, parsed.topic, parsed.partition)
    source, answer = maps.record_at(sources, parsed.offset)
    to = _place(source) if source else ("", parsed.topic, None)
    return [_line((cluster, *_log(order, parsed)), parsed.offset, to, answer)]


async def _shown(order: OrderHandle, parsed: argparse.Namespace) -> Sequence[Line]:
    """The offset in each T-global of the record at an offset of T in one cluster."""
    source = Origin(parsed.origin, parsed.partition).of(parsed.topic)
    names = [parsed.cluster] if parsed.cluster else [*order.clusters]
    answers = await asyncio.gather(*(_copied(order, name, source, parsed) for name in names))
    at, log = _place(source), _log(order, parsed)
    return [_line(at, parsed.offset, (name, *log), each) for name, each in zip(names, answers, strict=True)]


async def _copied(order: OrderHandle, cluster: str, source: Partition, parsed: argparse.Namespace) -> Translation:
    try:
        maps, sources = await order.maps(cluster, *_log(order, parsed, parsed.topic))
    except ApplianceError as error:
        return not_known(str(error))
    answer, position = maps.translate(source, parsed.offset), maps.position(source)
    if position is not None and parsed.offset >= position.next_offset:
        return Translation(None, TranslationState.AHEAD, parsed.offset - position.next_offset + 1)
    if answer.offset is not None and maps.record_at(sources, answer.offset) != (source, exact(parsed.offset)):
        return not_known("no record of the order is there, but a marker or an aborted record")
    return answer


def _log(order: OrderHandle, parsed: argparse.Namespace, topic: str = "") -> Partition:
    """The partition of T-global, or of T that it is named after."""
    return Partition(topic or order.naming.destination(parsed.topic), 0 if order.single else parsed.partition)


def _place(source: Partition) -> tuple[str, str, int]:
    cluster, _, topic = source.topic.partition(":")
    return cluster, topic, source.number


def _line(at: tuple[str, str, int], offset: int, to: tuple[str, str, int | None], answer: Translation) -> Line:
    return Line(*at, offset, *to, answer.offset, answer.state, answer.behind, answer.reason)


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("topic", help="the topic T")
    command.add_argument("partition", type=int, help="its partition")
    command.add_argument("offset", type=int, help="the offset in T-global; with --from in T")
    command.add_argument("--cluster", metavar="ID", help="the cluster of T-global (default: that of this VM, or all)")
    command.add_argument("--from", dest="origin", metavar="ID", help="the offset is one of T in this cluster")
    add_json(command)


ORIGIN = Command(
    "Tells from which cluster, partition and offset of T the record at an offset of T-global came; with --from the "
    "other way, for each T-global: exactly, or that it is not known. Only the clusters of these T-global are asked. "
    "Exit code 0 when every answer is exact.",
    until_stopped(with_settings_by(read_order, Role.REPLICATOR, origin)),
    _add_options,
)
