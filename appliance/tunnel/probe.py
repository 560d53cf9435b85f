"""The tunnel tried from the destination's end, step by step, beside the client that carries: nothing is relayed.

login: the SSH server lets us in, where there is one; dial: somebody is there; greet: it is the server; ask: it believes
us, and does or does not reach a target.
"""

import contextlib
import ssl
import time
from dataclasses import dataclass

from appliance.errors import ApplianceError, IdentityRefused
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.tunnel.asking import ask
from appliance.tunnel.certificates import names_in
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.dialler import dialler
from appliance.tunnel.identity import Identity
from appliance.tunnel.tls_channel import TlsChannel


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
        deadlines: how long each step may take.
    """

    def __init__(self, settings: TunnelSettings, identity: Identity, deadlines: Deadlines) -> None:
        self._dialler = dialler(settings, deadlines)
        self._identity = identity
        self._deadlines = deadlines
        self._dialled: TlsChannel | None = None
        self._greeted: TlsChannel | None = None

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
        self._dialled = await self._dial(self._identity.context)

    async def greet(self) -> None:
        """Learn that it is the server.

        Raises:
            Unreachable: it hangs up, or says nothing.
            PeerError: it does not speak TLS 1.3.
            IdentityRefused: it has no certificate of this link's source.
        """
        context = self._identity.context
        channel, self._dialled = self._dialled or await self._dial(context), None
        try:
            self._greeted = await self._believe(channel)
        except IdentityRefused:
            self._identity.refused(context)
            if self._identity.context is context:
                raise
            self._greeted = await self._believe(await self._dial(self._identity.context))

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
            answer = await ask(channel, target, self._deadlines.answer)
            skew = None if answer.date is None else answer.date - time.time()
            unless_said.pop_all()
        await channel.finish(self._deadlines.last_word)
        return Asked(answer.error(), skew)

    async def names(self) -> list[str]:
        """What the server calls itself in its certificate, believed or not.

        Raises:
            Unreachable, PeerError: as ``greet``.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        channel = await self._dial(context)
        try:
            certificate = await channel.handshake(self._deadlines.handshake)
        finally:
            channel.reset()
        return names_in(certificate) if certificate else []

    async def close(self) -> None:
        """Hang up everywhere."""
        await self._hang_up()
        await self._dialler.close()

    async def _hang_up(self) -> None:
        for channel in (self._dialled, self._greeted):
            if channel is not None:
                await channel.finish(self._deadlines.last_word)
        self._dialled = self._greeted = None

    async def _believe(self, channel: TlsChannel) -> TlsChannel:
        try:
            self._identity.check(await channel.handshake(self._deadlines.handshake))
        except BaseException:
            channel.reset()
            raise
        return channel

    async def _dial(self, context: ssl.SSLContext) -> TlsChannel:
        return await self._dialler.dial(lambda: TlsChannel(context))
