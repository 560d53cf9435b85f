"""TLS of the page: its certificate from files, which are read again when they change."""

import contextlib
import logging
import ssl
from collections.abc import AsyncIterator

from appliance.errors import SettingsError
from appliance.runtime.background import in_background
from appliance.settings.control_center import ControlCenterSettings
from appliance.settings.pem_files import as_file, signature_of

log = logging.getLogger("appliance.console")


@contextlib.asynccontextmanager
async def page_tls(own: ControlCenterSettings) -> AsyncIterator[ssl.SSLContext | None]:
    """The TLS with which the page listens while the block runs; None without. Open connections keep their certificate.

    Raises:
        SettingsError: the files cannot be used from the start.
    """
    if own.certificate is None:
        yield None
        return
    files = [*own.files.values()]
    taken = signature_of(files)
    listening = present = _context(own)

    async def renew() -> None:
        nonlocal present, taken
        if (seen := signature_of(files)) != taken:
            present, taken = _context(own), seen
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
