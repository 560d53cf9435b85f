"""The status of the tunnel's far end, asked for through the tunnel, and only while somebody wants to see it.

Whoever looks gets the last known answer at once. If it is old, one request is made in the background: one for all who
look meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable

from appliance.clock import epoch_seconds, loop_seconds
from appliance.errors import ApplianceError
from appliance.gateway.model.far_view import FarView, read_document


class FarEnd:
    """Keeps the newest answer.

    Args:
        ask: gets the far end's document through the tunnel; raises ApplianceError.
        link: the link's name.
    """

    def __init__(self, ask: Callable[[], Awaitable[bytes]], link: str) -> None:
        self._ask = ask
        self._link = link
        self._wanted = asyncio.Event()
        self._next = 0.0
        self._view = FarView()

    def look(self) -> FarView:
        """The last known answer; a newer one is fetched in the background if this one is old."""
        if loop_seconds() >= self._next:
            self._wanted.set()
        return self._view

    async def run(self) -> None:
        """Ask when somebody looks, until cancelled."""
        while True:
            await self._wanted.wait()
            try:
                self._view = self._view.answered(read_document(await self._ask(), self._link), epoch_seconds())
            except ApplianceError as error:
                self._view = self._view.failed(error, epoch_seconds())
            except Exception as error:
                self._view = self._view.failed(error, epoch_seconds())
                raise
            finally:
                self._next = loop_seconds() + self._view.pause
                self._wanted.clear()
