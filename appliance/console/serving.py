"""The addresses on which the control center serves: a TCP port, and a socket for the VM's other control centers."""

import contextlib
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web

from appliance.errors import SettingsError
from appliance.runtime.bind import port_refused
from appliance.settings.target import Target


@contextlib.asynccontextmanager
async def serving(
    app: web.Application, at: Target, own_socket: Path | None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Target]:
    """Serve while the block runs, on the address and on the socket; yield the address.

    Raises:
        SettingsError: one of them cannot be had.
    """
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=2.0)
    await runner.setup()
    bound: int | None = None
    try:
        with port_refused("CONTROL_CENTER_LISTEN", at):
            await web.TCPSite(runner, at.host, at.port, ssl_context=tls).start()
        port: int = runner.addresses[0][1]
        if own_socket is not None:
            bound = await _serve_on_socket(runner, own_socket)
        yield Target(at.host, port)
    finally:
        await runner.cleanup()
        if own_socket is not None and bound is not None:
            _remove(own_socket, bound)


async def _serve_on_socket(runner: web.AppRunner, path: Path) -> int:
    """Replace the socket that a killed process has left; return the new one's inode, since another may follow."""
    try:
        _remove(path)
        await web.UnixSite(runner, str(path)).start()
        os.chmod(path, 0o666)  # the other links' control centers may run as other users
        return os.stat(path).st_ino
    except OSError as error:
        raise SettingsError([f"CONTROL_CENTER_LINKS={path.parent}: {error.strerror or error}"]) from error


def _remove(path: Path, inode: int | None = None) -> None:
    """Remove a file, if it has this inode."""
    with contextlib.suppress(FileNotFoundError):
        if inode is None or path.stat().st_ino == inode:
            path.unlink()
