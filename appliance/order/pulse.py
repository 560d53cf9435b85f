"""The pulse of an order: this process's beats, and those of all others; and operators' wishes."""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.clock import now_ms
from appliance.engine.problem_log import ProblemLog, log_defect
from appliance.errors import ApplianceError, PeerError
from appliance.kafka.client.compacted_log import read_records
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.produce import append
from appliance.kafka.protocol.metadata import Metadata
from appliance.kafka.records.records import Record
from appliance.logs.model.span import Span
from appliance.order.followed_log import FollowedLog
from appliance.order.model.beats import Beat, LaneBeat, Wish, decode, encode_beat, encode_wish
from appliance.order.names import BEATS_LOG

_INTERVAL, _NEWEST = 1.0, 60
"""Seconds between two beats, and the number of records among which the newest ones are looked for."""


@dataclass(eq=False)
class Pulse:
    """Writes a beat of ``lanes`` each second, and at once when it is ``due``; gives ``heard`` and ``wished`` to others.

    What was written before it began is left out: a wish that was met, or not, is not met again.
    """

    own: str
    clusters: Mapping[str, Cluster]
    lanes: Callable[[], Sequence[LaneBeat]]
    heard: Callable[[str, Sequence[LaneBeat]], None]
    wished: Callable[[Wish], None]
    problems: ProblemLog
    due: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Beat, and listen, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name, cluster in self.clusters.items():
                take = functools.partial(self._take, name)
                log = FollowedLog(cluster, BEATS_LOG, "order-beats", take, lambda: None, lambda: None, from_end=True)
                tasks.create_task(log.follow(), name=f"order-beats-{name}")
            tasks.create_task(self._beat(), name="order-beats")

    async def _beat(self) -> None:
        while True:
            self.due.clear()
            try:
                await self._write()
                self.problems.over("beats")
            except ApplianceError as error:
                self.problems.tell("beats", error)
            except Exception as error:
                self.problems.tell("beats", log_defect(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_INTERVAL):
                    await self.due.wait()

    async def _write(self) -> None:
        cluster = self.clusters[self.own]
        metadata = await cluster.metadata([BEATS_LOG.topic])
        await append(cluster, metadata, BEATS_LOG, [encode_beat(Beat(self.own, tuple(self.lanes())), now_ms())])

    def _take(self, cluster: str, records: Sequence[Record]) -> None:
        for record in records:
            try:
                decoded = decode(record)
            except PeerError as error:  # it must not keep the others from being heard
                self.problems.tell(f"beats of {cluster}", error)
                continue
            match decoded:
                case Beat(name, lanes):
                    if name != cluster:
                        self.problems.tell(f"beats of {cluster}", misnamed(name))
                    elif name != self.own:
                        self.heard(name, lanes)
                case Wish() as wish:
                    self.wished(wish)


def misnamed(name: str) -> PeerError:
    """The error that the process beside a cluster calls it by another id."""
    return PeerError(f"its process calls it {name}: GLOBAL_CLUSTERS must be the same on all VMs")


async def newest_beats(cluster: Cluster, metadata: Metadata, span: Span) -> Sequence[tuple[int, Beat]] | None:
    """The newest beats in a cluster, each with its time in milliseconds; None if they cannot be read now."""
    beats, at = list[tuple[int, Beat]](), max(span.start, span.end - _NEWEST)
    try:
        while at < span.end:
            records, at = await read_records(cluster, metadata, BEATS_LOG, at)
            decoded = [(each.timestamp, decode(each)) for each in records]
            beats += [(time, beat) for time, beat in decoded if isinstance(beat, Beat)]
    except ApplianceError:
        return None
    return beats


async def wish(cluster: Cluster, wanted: Wish) -> None:
    """Leave a wish in the topic of beats of a cluster."""
    await append(cluster, await cluster.metadata([BEATS_LOG.topic]), BEATS_LOG, [encode_wish(wanted, now_ms())])
