"""Probe the tunnel from the destination's end, step by step; nothing is relayed.

login: log in to the SSH server, where there is one; dial: connect; greet: check the server's identity; ask: have the
server check ours, and reach a target.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from appliance.clock import epoch_seconds
from appliance.errors import ApplianceError, HelloUnanswered, IdentityRefused
from appliance.settings.target import Target
from appliance.settings.values import Side, TunnelSettings
from appliance.tls.identity import Identity, LinkTls
from appliance.tls.proof_check import TOLERANCE
from appliance.tunnel.dialler import dialler, request_target
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.stream.tls_channel import TlsChannel, client_channel

_SKEWS = (*(2 * TOLERANCE * steps for steps in range(1, 16)), *(900.0 * quarters for quarters in range(5, 57)))
"""Seconds by which a clock may be wrong: any number up to an hour, then about quarters of hours up to 14 hours, as of
another time zone."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The server's answer: why it does not reach the target, None when it does.

    ``skew`` is the lead of its clock over ours in seconds, give or take one; None: it sent no date.
    """

    failure: ApplianceError | None
    skew: float | None = None


class TlsProbe:
    """Probes a tunnel."""

    def __init__(self, settings: TunnelSettings, identity: Identity, timeouts: Timeouts) -> None:
        self._dialler = dialler(settings, timeouts)
        self._identity = identity
        self._timeouts = timeouts
        self._dialled: TlsChannel | None = None
        self._greeted: TlsChannel | None = None

    async def login(self) -> None:
        """Log in to the SSH server, where there is one."""
        await self._dialler.login()

    async def dial(self) -> None:
        """Connect."""
        await self._close_channels()
        self._dialled = await self._dial(self._identity.tls)

    async def greet(self) -> None:
        """Check the server's identity.

        Raises:
            HelloUnanswered: it does not accept our first flight.
            IdentityRefused: it has no certificate of this link's source.
        """
        keys = self._identity.tls
        channel, self._dialled = self._dialled or await self._dial(keys), None
        try:
            self._greeted = await self._check(channel)
        except IdentityRefused:
            self._identity.refused(keys)
            if self._identity.tls is keys:
                raise
            self._greeted = await self._check(await self._dial(self._identity.tls))

    async def ask(self, target: Target) -> Asked:
        """Have the server connect us to ``target``, and close."""
        if self._greeted is None:
            await self.greet()
        channel, self._greeted = self._greeted, None
        assert channel is not None
        with contextlib.ExitStack() as unless_said:
            unless_said.callback(channel.reset)
            answer = await request_target(channel, target, self._timeouts.answer)
            skew = None if answer.date is None else answer.date - epoch_seconds()
            unless_said.pop_all()
        await channel.finish(self._timeouts.last_word)
        return Asked(answer.error(), skew)

    async def skew(self) -> float | None:
        """Seconds by which the server's clock is ahead of ours, roughly, if it answers a hello of another time."""
        for seconds in _SKEWS:
            for ahead in (seconds, -seconds):
                for keys in self._identity.all_tls:
                    if await self._answers(keys, ahead):
                        return ahead
        return None

    async def close(self) -> None:
        """Close all connections."""
        await self._close_channels()
        await self._dialler.close()

    async def _close_channels(self) -> None:
        for channel in (self._dialled, self._greeted):
            if channel is not None:
                await channel.finish(self._timeouts.last_word)
        self._dialled = self._greeted = None

    async def _answers(self, keys: LinkTls, ahead: float) -> bool:
        channel = await self._dial(keys, ahead)
        try:
            await channel.handshake(self._timeouts.handshake)
        except HelloUnanswered:
            return False
        except IdentityRefused:
            return True
        finally:
            channel.reset()
        return True

    def days_left(self) -> Mapping[Side, float]:
        """Days until either end's certificate is no longer valid; the source's once it was greeted."""
        days, of_peer = {Side.DESTINATION: self._identity.days_left()}, self._identity.peer_days_left()
        return days if of_peer is None else {**days, Side.SOURCE: of_peer}

    async def _check(self, channel: TlsChannel) -> TlsChannel:
        try:
            self._identity.check(await channel.handshake(self._timeouts.handshake))
        except BaseException:
            channel.reset()
            raise
        return channel

    async def _dial(self, keys: LinkTls, ahead: float = 0.0) -> TlsChannel:
        return await self._dialler.dial(lambda: client_channel(keys, ahead))
