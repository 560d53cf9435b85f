"""The control center in this process, with facts in place of clusters, so that any state of a link can be shown."""

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from appliance.console.access import Access, Right
from appliance.console.commands import Commands
from appliance.console.peer_centers import PeerCenters, socket_of
from appliance.console.server import ConsoleServer
from appliance.console.serving import page_tls, serving
from appliance.console.tunnel import TunnelView
from appliance.console.watch import LinkWatch
from appliance.errors import Unreachable
from appliance.kafka.protocol.metadata import Partition, Topic
from appliance.link.model.agreement import CopyLog
from appliance.link.model.position import Position
from appliance.settings.target import Target
from appliance.status.model.facts import DestinationFacts, Log, SourceFacts
from appliance.status.model.snapshot import Snapshot
from tests.support.facts import COPY_ID, NOW, RUN, SOURCE_ID, metadata, positions_topic, settings, snapshot
from tests.support.settings import REQUIRED

_NO_TUNNEL = TunnelView()


def watch_of(*taken: Snapshot, clock: Callable[[], float] = time.monotonic) -> LinkWatch:
    """The watch of a link that has seen these snapshots, beside a replicator and a tunnel that are well."""

    async def collected() -> Snapshot:
        raise AssertionError("nothing is collected here")

    async def answers() -> str:
        return ""

    watch = LinkWatch(collected, answers, answers, clock)
    watch.replicator_unknown = watch.tunnel_fault = ""
    for snapshot_taken in taken:
        watch.add(snapshot_taken)
    return watch


@contextlib.asynccontextmanager
async def shown(
    taken: Snapshot | Sequence[Snapshot] | None,
    env_file: Path = Path("setenv.sh"),
    links: Path | None = None,
    metrics: Callable[[Target], Awaitable[tuple[int, bytes]]] | None = None,
    tunnel: TunnelView = _NO_TUNNEL,
    **changed: str,
) -> AsyncIterator[str]:
    """Serve a snapshot, or the last of some, among the control centers of ``links``; yield the address."""

    async def shown_tunnel() -> TunnelView:
        return tunnel

    snapshots = [taken] if isinstance(taken, Snapshot) else taken or ()
    own, clock = settings(**changed), (lambda: 1000.0)
    watch, commands = watch_of(*snapshots, clock=clock), Commands(env_file)
    socket = socket_of(links, own.tunnel.link) if links else None

    async def no_metrics(at: Target) -> tuple[int, bytes]:
        raise Unreachable(f"nothing answers at {at}")

    center = own.control_center
    access = Access({Right.OPERATOR: center.token, Right.VIEWER: center.viewer_token}, clock)
    server = ConsoleServer(
        own,
        REQUIRED | changed,
        watch,
        commands,
        PeerCenters(links, socket),
        access,
        shown_tunnel,
        metrics or no_metrics,
    )
    async with (
        page_tls(own.control_center) as tls,
        serving(server.app, Target("127.0.0.1", 0), socket, tls) as address,
    ):
        try:
            yield str(address)
        finally:
            await commands.close()


def of_size(topics: Mapping[str, int], now: int = NOW, stopped: int = 0) -> Snapshot:
    """A snapshot of topics with these numbers of partitions; of each topic the first ``stopped`` are stopped."""
    sources = [Topic(name, SOURCE_ID, False, (1,) * size) for name, size in topics.items()]
    copies = [Topic(f"{name}.copy", COPY_ID, False, (1,) * size) for name, size in topics.items()]
    keys = [Partition(name, number) for name, size in topics.items() for number in range(size)]
    positions = {
        key: Position(
            SOURCE_ID, COPY_ID, 100, 0, 90, 9000, now - 5000, *(("retention", now) if key.number < stopped else ())
        )
        for key in keys
    }
    source = SourceFacts(metadata(*sources), {key: Log(-1, 100 + key.number % 7, 110) for key in keys})
    logs = {key: CopyLog(Partition(f"{key.topic}.copy", key.number)) for key in positions}
    destination = DestinationFacts(
        metadata(*copies), positions_topic(), positions=positions, owners=(RUN, RUN, RUN), copies=logs
    )
    return snapshot(source, destination, now=now, REPLICA_TOPICS_SOURCE_REGEX=".*")
