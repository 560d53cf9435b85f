"""The addresses on which the control center serves: a TCP port, with TLS if there is a certificate, and a socket for
the VM's other control centers."""

import asyncio
import collections
import contextlib
import errno
import logging
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from aiohttp import web

from appliance.errors import SettingsError
from appliance.runtime.background import in_background
from appliance.runtime.bind import port_refused
from appliance.settings.control_center import ControlCenterSettings
from appliance.settings.pem_files import as_file, signature_of
from appliance.settings.target import Target

log = logging.getLogger("appliance.console")

HEAD_SECONDS = 20.0
"""Longest wait for the head of a connection's first or next request; an open page asks every 3 s."""
CONNECTIONS_MAX = 256
_BY_ANOTHER_USER = (errno.EPERM, errno.EISDIR, errno.EADDRINUSE, errno.ENOSPC)
"""Errors of the socket if another user of the directory has taken its place, or filled the disk."""


@contextlib.asynccontextmanager
async def serving(
    app: web.Application, at: Target, own_socket: Path | None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Target]:
    """Serve while the block runs, on the address and on the socket; yield the address."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=2.0, keepalive_timeout=HEAD_SECONDS)
    accept = _bounded(runner)
    await runner.setup()
    with port_refused("CONTROL_CENTER_LISTEN", at):
        listener = await asyncio.get_running_loop().create_server(
            accept, at.host, at.port, ssl=tls, ssl_handshake_timeout=HEAD_SECONDS if tls else None
        )
    bound: int | None = None
    try:
        if own_socket is not None:
            bound = await _serve_on_socket(runner, own_socket)
        yield Target(at.host, listener.sockets[0].getsockname()[1])
    finally:
        listener.close()
        await runner.cleanup()
        if own_socket is not None and bound is not None:
            _remove(own_socket, bound)


def _bounded(runner: web.AppRunner) -> Callable[[], asyncio.Protocol]:
    """Accept connections. One too many ends the oldest that sends its request or takes its answer, else of all.

    As many may be in the handshake of TLS; one too many ends the oldest.
    """
    answering = set[object]()
    handshakes = collections.OrderedDict[asyncio.Task[object], None]()

    @web.middleware
    async def note(request: web.Request, handler: Callable[..., Awaitable[web.StreamResponse]]) -> web.StreamResponse:
        if not request.can_read_body:  # a body may never come
            answering.add(request.protocol)
        try:
            return await handler(request)
        finally:
            answering.discard(request.protocol)

    def accept() -> asyncio.Protocol:
        assert runner.server is not None
        there = sorted(runner.server.connections, key=answering.__contains__)
        for each in there[: max(0, len(there) - CONNECTIONS_MAX + 1)]:
            if each.transport is not None:
                each.transport.abort()
        # asyncio accepts each connection in a task that ends with the handshake of TLS. Cancelled, it closes.
        if task := asyncio.current_task():
            handshakes[task] = None
            task.add_done_callback(lambda done: handshakes.pop(done, None))
        if task and len(handshakes) > CONNECTIONS_MAX:
            handshakes.popitem(last=False)[0].cancel()
        return runner.server()

    runner.app.middlewares.append(note)
    return accept


async def _serve_on_socket(runner: web.AppRunner, path: Path) -> int | None:
    """Replace the socket that a killed process has left; return the new one's inode, since another may follow."""
    try:
        _remove(path)
        await web.UnixSite(runner, str(path)).start()
        os.chmod(path, 0o600 if os.getuid() else 0o666)  # root's is every user's peer
        return os.stat(path).st_ino
    except OSError as error:
        if error.errno in _BY_ANOTHER_USER:
            log.warning("the VM's other control centers do not see this one", extra={"fields": {"reason": str(error)}})
            return None
        raise SettingsError([f"CONTROL_CENTER_LINKS={path.parent}: {error.strerror or error}"]) from error


def _remove(path: Path, inode: int | None = None) -> None:
    """Remove a file, if it has this inode."""
    with contextlib.suppress(FileNotFoundError):
        if inode is None or path.stat().st_ino == inode:
            path.unlink()


@contextlib.asynccontextmanager
async def page_tls(own: ControlCenterSettings) -> AsyncIterator[ssl.SSLContext | None]:
    """The TLS with which the page listens, None without; open connections keep their certificate."""
    if own.certificate is None:
        yield None
        return
    files = [*own.files.values()]
    signature = signature_of(files)
    listening = present = _context(own)

    async def renew() -> None:
        nonlocal present, signature
        if (newest := signature_of(files)) != signature:
            present, signature = _context(own), newest
            log.info("certificate files taken", extra={"fields": {"certificate": str(own.certificate)}})

    # A context of its own for each set, since a context keeps an old certificate beside a new one of another kind.
    listening.sni_callback = lambda connection, _name, _context: setattr(connection, "context", present)
    async with in_background(log, "the page's certificate is not taken again: {}", renewal=renew):
        yield listening


def _context(own: ControlCenterSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # A resumed session would outlive a change of the authority, and TLS 1.2 resumes without our tickets.
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if own.authority else ssl.TLSVersion.TLSv1_2
    try:
        pair, authority = own.read_files()
        with as_file(pair) as path:
            context.load_cert_chain(path)
        if authority:
            context.load_verify_locations(cadata=authority.decode())
            context.verify_mode = ssl.CERT_OPTIONAL
            context.num_tickets = 0
    except ssl.SSLError as error:
        raise SettingsError([f"CONSOLE_TLS_CERTIFICATE_FILE={own.certificate}: not fit for TLS: {error}"]) from error
    except ValueError as error:
        raise SettingsError([str(error)]) from error
    return context
