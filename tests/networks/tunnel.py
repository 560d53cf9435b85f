"""The tunnel between the VMs, as it can be started and stopped."""

import contextlib
from collections.abc import AsyncIterator
from typing import Self

from tests.networks.stage import Stage


class Tunnel:
    """Both ends, with the shim, on their VMs; a context manager that may be entered again."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._undo = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.stop()

    async def start(self, **changed: str) -> None:
        """Returns when both ends are ready, with settings of their own."""
        machines = self.stage.machines
        async with contextlib.AsyncExitStack() as starting:
            for machine, command in ((machines.source_vm, "source"), (machines.destination_vm, "destination")):
                await starting.enter_async_context(self.stage.appliance(machine, command, **changed))
            self._undo = starting.pop_all()

    async def stop(self) -> None:
        """Returns when neither is there."""
        await self._undo.aclose()

    @contextlib.asynccontextmanager
    async def stopped(self) -> AsyncIterator[None]:
        """Without it for as long as the block lasts."""
        await self.stop()
        try:
            yield
        finally:
            await self.start()

    @contextlib.asynccontextmanager
    async def changed(self, **changed: str) -> AsyncIterator[None]:
        """Run with other settings during the block."""
        async with self.stopped():
            await self.start(**changed)
            try:
                yield
            finally:
                await self.stop()
