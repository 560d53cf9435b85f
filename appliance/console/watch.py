"""The watch of one link: collects snapshots, often while somebody looks and seldom otherwise, and keeps a history."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from appliance.clock import monotonic, now_ms
from appliance.console.model.events import Event, changes, merged, written_down
from appliance.console.model.history import History
from appliance.status.model.document import STALE_SECONDS, is_fresh
from appliance.status.model.running import Running, with_running
from appliance.status.model.snapshot import Snapshot

_VIEWED = 3.0
_IDLE = 15.0
"""Seconds between two collections, while somebody views the link and while nobody does."""

_VIEWED_SECONDS = 30.0
"""Seconds after a request for which somebody views the link."""

_RENEWED_WITHIN = 5.0
"""Seconds for which a request may wait for a newer snapshot than an old one."""

_COST_MAX = 0.2
_IDLE_COST_MAX = 0.008
"""Part of a core that collecting may take, while somebody views the link and while nobody does."""


@dataclass(slots=True)
class LinkWatch:
    """The newest snapshot of a link, its history and its events.

    ``ask_replicator`` and ``ask_tunnel`` ask this VM's; a trouble of the tunnel is empty if it is well.
    """

    collect: Callable[[], Awaitable[Snapshot]]
    ask_replicator: Callable[[], Awaitable[Running]]
    ask_tunnel: Callable[[], Awaitable[str]]
    clock: Callable[[], float] = monotonic
    snapshot: Snapshot | None = None
    history: History = field(default_factory=History)
    events: list[Event] = field(default_factory=list)
    history_note: str = ""
    """The reason that the history began anew, or is not kept."""
    state_since: int | None = None
    """The first time at which this control center has seen the link in its present state."""
    replicator_unknown: str = "not asked yet"
    tunnel_fault: str = "unknown: not asked yet"
    _added: float = 0.0
    _renewed: asyncio.Event = field(default_factory=asyncio.Event)
    _viewed: float = -_VIEWED_SECONDS
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)

    def mark_viewed(self) -> None:
        """Note that somebody views the link: after a while without, the next collection begins at once."""
        if not self._is_viewed:
            self._wanted.set()
        self._viewed = self.clock()

    @property
    def fresh(self) -> bool:
        """True while the newest snapshot is current: by its time, and by the clock, as the time may be set back."""
        added = self.clock() - self._added <= STALE_SECONDS
        return self.snapshot is not None and added and is_fresh(self.snapshot, now_ms())

    async def renew(self) -> None:
        """Note that somebody views it who will not come back soon: wait some seconds while the snapshot is old."""
        self.mark_viewed()
        if not self.fresh:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RENEWED_WITHIN):
                    await self._renewed.wait()

    async def run(self) -> None:
        """Collect until cancelled."""
        while True:
            began = time.process_time()
            snapshot, running, self.tunnel_fault = await asyncio.gather(
                self.collect(), self.ask_replicator(), self.ask_tunnel()
            )
            self.replicator_unknown = running.unknown
            self.add(with_running(snapshot, replace(running, unknown="")))
            await self._pause(time.process_time() - began)

    def add(self, snapshot: Snapshot) -> None:
        """Add a snapshot."""
        if self.snapshot is None or self.snapshot.state is not snapshot.state:
            self.state_since = snapshot.at
        self.events = merged(self.events, [*written_down(snapshot), *changes(self.snapshot, snapshot)])
        self.history.add(snapshot)
        self.snapshot, self._added = snapshot, self.clock()
        self._renewed.set()
        self._renewed = asyncio.Event()

    @property
    def _is_viewed(self) -> bool:
        return self.clock() - self._viewed < _VIEWED_SECONDS

    async def _pause(self, cost: float) -> None:
        """Wait for the next collection, at once after a view; ``cost`` is the last one's, in seconds of a core."""
        soon = max(_VIEWED, cost / _COST_MAX)
        self._wanted.clear()
        if self._is_viewed:
            await asyncio.sleep(soon)
            return
        try:
            async with asyncio.timeout(max(_IDLE, cost / _IDLE_COST_MAX)):
                await self._wanted.wait()
        except TimeoutError:
            pass
