"""One source VM as the client reaches it: its dialler, its identity, its health, and the connections it carries."""

import asyncio
import contextlib
import random

from appliance.clock import deadline
from appliance.errors import ApplianceError, Draining, IdentityRefused, Unreachable
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.tls.identity import Identity
from appliance.tunnel.dialler import TargetFailed, dialler, request_status, request_target
from appliance.tunnel.limits.pending_handshakes import HANDSHAKES_AT_ONCE
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.model.servers import Server
from appliance.tunnel.stream.listen import Connections
from appliance.tunnel.stream.tls_channel import TlsChannel, client_channel


class Away(Unreachable):
    """No try is admitted now."""


class SourceVm(Server):
    """Reaches the tunnel's server; ``settings`` name no other, and ``connections`` get those that it refuses."""

    def __init__(
        self, settings: TunnelSettings, identity: Identity, timeouts: Timeouts, connections: Connections
    ) -> None:
        super().__init__(settings.way, random.random)
        self._identity = identity
        self._timeouts = timeouts
        self._connections = connections
        self._handshakes = asyncio.Semaphore(HANDSHAKES_AT_ONCE)
        self.dialler = dialler(settings, timeouts)

    async def connect(self, target: Target, *, admitted: bool) -> TlsChannel:
        """A channel that the server has connected to ``target``; the caller's from then on.

        Raises:
            Away: no try was ``admitted``, and another one has failed meanwhile.
            TargetFailed: the server does not reach the target.
        """
        far = await self._reach(admitted=admitted)
        with contextlib.ExitStack() as unless_connected:
            unless_connected.callback(far.reset)
            failure = (await request_target(far, target, self._timeouts.answer)).error()
            if isinstance(failure, Draining):
                raise failure
            unless_connected.pop_all()
        if failure:
            self._say_last_word(far)
            raise TargetFailed(failure)
        return far

    async def status(self, seconds: float) -> bytes:
        """Its status document, within ``seconds``; raises as ``request_status``."""
        async with deadline(seconds, f"no status from {self.name}"):
            far = await self._reach(admitted=True)
            try:
                document = await request_status(far, seconds)
                await far.finish(self._timeouts.last_word)
            finally:
                far.reset()  # also when the last word is cut short; after a whole one there is nothing left to reset
        return document

    async def _reach(self, *, admitted: bool) -> TlsChannel:
        """A channel to the server, which has proved its identity."""
        async with self._handshakes:
            if not (admitted or self.usable):
                raise Away(self.fault)
            keys = self._identity.tls
            with self._connections.counters.dials.timed():
                far = await self.dialler.dial(lambda: client_channel(keys))
            try:
                with self._connections.counters.handshakes.timed():
                    self._identity.check(await far.handshake(self._timeouts.handshake))
            except ApplianceError as error:
                if isinstance(error, IdentityRefused):
                    self._identity.refused(keys)
                self._say_last_word(far)
                raise
            except BaseException:
                far.reset()
                raise
            self._identity.accepted(keys)
            return far

    def _say_last_word(self, far: TlsChannel) -> None:
        self._connections.start(far, far.finish(self._timeouts.last_word), "last word to the tunnel server")
