"""From the settings to an SSH connection: directly, or inside a connection to a bastion."""

import asyncio
import os
import socket
from collections.abc import Callable

import asyncssh

from appliance.errors import NameUnresolved, TimedOut, Unreachable
from appliance.settings.login import Login
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.ssh.errors import connection_error, one_line
from appliance.tunnel.ssh.keys import LinkKeys
from appliance.tunnel.ssh.options import client_options

Lost = Callable[[Exception | None], None]
"""Told by what a connection was lost."""


class Hop:
    """One SSH server on the way, and how to log in to it.

    Args:
        login: where, and as whom.
        keys: our own, and those of which the server has to hold one.
    """

    def __init__(self, login: Login, keys: LinkKeys, deadlines: Deadlines) -> None:
        self._login = login
        self._seconds = deadlines.dial + deadlines.handshake
        self._options = client_options(login.user, keys, deadlines)

    def __str__(self) -> str:
        return str(self._login)

    async def connect(
        self, lost: Lost | None = None, through: asyncssh.SSHClientConnection | None = None
    ) -> asyncssh.SSHClientConnection:
        """Log in, ``through`` another hop's connection if there is one; ``lost`` is called when it is over.

        Raises:
            IdentityRefused: the server is not who it has to be, or does not accept us.
            PeerError: what answers is no SSH server with today's algorithms.
            Unreachable: nobody answers, or not in time.
        """
        server = self._login.server
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncssh.connect(
                    server.host.strip("[]"),
                    server.port,
                    config=None,
                    options=self._options,
                    tunnel=through,
                    client_factory=lambda: _Owner(lost),
                )
        except TimeoutError as error:
            raise TimedOut(f"no SSH connection with {server} within {self._seconds:g} s") from error
        except asyncssh.ChannelOpenError as error:
            raise Unreachable(f"{server} through the bastion: {one_line(error.reason)}") from error
        except socket.gaierror as error:
            raise NameUnresolved(f"no address for {server.host}: {error.strerror}") from error
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else one_line(str(error))
            raise Unreachable(f"{server}: {reason.lower()}") from error
        except asyncssh.Error as error:
            raise connection_error(error) from error


class _Owner(asyncssh.SSHClient):
    """Passes on that a connection is over."""

    def __init__(self, lost: Lost | None) -> None:
        self._lost = lost

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh: the connection is closed."""
        if self._lost:
            self._lost(exc)
