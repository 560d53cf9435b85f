"""The tunnel tried from the destination's end, step by step, beside the client that carries: nothing is relayed.

login: the SSH server lets us in, where there is one; dial: somebody is there; greet: it is the server; ask: it believes
us, and does or does not reach a target.
"""

import contextlib
import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509

from appliance.errors import ApplianceError, HelloUnanswered, IdentityRefused
from appliance.settings.target import Target
from appliance.settings.values import Side, TunnelSettings
from appliance.tls.certificates import days_left
from appliance.tls.identity import Identity, Known
from appliance.tls.proof_check import TOLERANCE
from appliance.tunnel.dialler import dialler, request_target
from appliance.tunnel.model.timeouts import Timeouts
from appliance.tunnel.stream.tls_channel import TlsChannel, client_channel

_SKEWS = (*(2 * TOLERANCE * steps for steps in range(1, 16)), *(900.0 * quarters for quarters in range(5, 57)))
"""Seconds by which a clock may be wrong: any number up to an hour, then about quarters of hours up to 14 hours, as of
another time zone."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a server that believes us says: why it does not reach the target, None when it does.

    ``skew`` is how many seconds its clock is ahead of ours, give or take one; None: it does not tell the time.
    """

    failure: ApplianceError | None
    skew: float | None = None


class TlsProbe:
    """Tries a tunnel.

    Args:
        settings: where the server is, and the SSH server on the way if there is one.
        identity: the destination's.
        timeouts: how long each step may take.
    """

    def __init__(self, settings: TunnelSettings, identity: Identity, timeouts: Timeouts) -> None:
        self._dialler = dialler(settings, timeouts)
        self._identity = identity
        self._timeouts = timeouts
        self._dialled: TlsChannel | None = None
        self._greeted: TlsChannel | None = None
        self._peer: bytes | None = None

    async def login(self) -> None:
        """Be known to the SSH server, where there is one.

        Raises:
            ApplianceError: as ``ssh.carrier``.
        """
        await self._dialler.login()

    async def dial(self) -> None:
        """Connect.

        Raises:
            ForwardRefused: the SSH server does not let us.
            TimedOut, Unreachable: nobody answers.
        """
        await self._hang_up()
        self._dialled = await self._dial(self._identity.known)

    async def greet(self) -> None:
        """Learn that it is the server.

        Raises:
            Unreachable: it hangs up, or says nothing.
            PeerError: it does not speak TLS 1.3.
            HelloUnanswered: it does not believe our first flight.
            IdentityRefused: it has no certificate of this link's source.
        """
        known = self._identity.known
        channel, self._dialled = self._dialled or await self._dial(known), None
        try:
            self._greeted = await self._believe(channel)
        except IdentityRefused:
            self._identity.refused(known)
            if self._identity.known is known:
                raise
            self._greeted = await self._believe(await self._dial(self._identity.known))

    async def ask(self, target: Target) -> Asked:
        """Have the server connect us to ``target``, and hang up.

        Raises:
            IdentityRefused: it does not believe us.
            Unreachable, PeerError: as ``greet``.
        """
        if self._greeted is None:
            await self.greet()
        channel, self._greeted = self._greeted, None
        assert channel is not None
        with contextlib.ExitStack() as unless_said:
            unless_said.callback(channel.reset)
            answer = await request_target(channel, target, self._timeouts.answer)
            skew = None if answer.date is None else answer.date - time.time()
            unless_said.pop_all()
        await channel.finish(self._timeouts.last_word)
        return Asked(answer.error(), skew)

    async def skew(self) -> float | None:
        """Seconds by which the server's clock is ahead of ours, roughly, if it answers a hello of another time at all.

        Raises:
            Unreachable, PeerError: as ``greet``.
        """
        for seconds in _SKEWS:
            for ahead in (seconds, -seconds):
                for known in self._identity.every_known:
                    if await self._answers(known, ahead):
                        return ahead
        return None

    async def close(self) -> None:
        """Hang up everywhere."""
        await self._hang_up()
        await self._dialler.close()

    async def _hang_up(self) -> None:
        for channel in (self._dialled, self._greeted):
            if channel is not None:
                await channel.finish(self._timeouts.last_word)
        self._dialled = self._greeted = None

    async def _answers(self, known: Known, ahead: float) -> bool:
        channel = await self._dial(known, ahead)
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
        days = {Side.DESTINATION: self._identity.days_left()}
        if self._peer:
            peer = x509.load_der_x509_certificate(self._peer)
            days[Side.SOURCE] = days_left(peer, datetime.datetime.now(datetime.UTC))
        return days

    async def _believe(self, channel: TlsChannel) -> TlsChannel:
        try:
            self._peer = await channel.handshake(self._timeouts.handshake)
            self._identity.check(self._peer)
        except BaseException:
            channel.reset()
            raise
        return channel

    async def _dial(self, known: Known, ahead: float = 0.0) -> TlsChannel:
        return await self._dialler.dial(lambda: client_channel(known, ahead))
