"""The tunnel between the VMs, as it can be started and stopped."""

import contextlib
from collections.abc import AsyncIterator
from typing import Self

from tests.networks.vpcs import Vpcs


class Tunnel:
    """Both ends, with the shim, on their VMs; a context manager that can be entered again."""

    def __init__(self, vpcs: Vpcs) -> None:
        self.vpcs = vpcs
        self._undo = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.stop()

    async def start(self, **changed: str) -> None:
        """Start both ends with these settings, and wait until they are ready."""
        machines = self.vpcs.machines
        async with contextlib.AsyncExitStack() as starting:
            for machine, command in ((machines.source_vm, "source"), (machines.destination_vm, "destination")):
                await starting.enter_async_context(self.vpcs.appliance(machine, command, **changed))
            self._undo = starting.pop_all()

    async def stop(self) -> None:
        """Stop both ends."""
        await self._undo.aclose()

    @contextlib.asynccontextmanager
    async def stopped(self) -> AsyncIterator[None]:
        """Stop the tunnel for the duration of the block."""
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
