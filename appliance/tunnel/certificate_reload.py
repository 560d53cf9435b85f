"""Reload certificate files when they change; established connections keep the certificates that they began with."""

import asyncio
import logging
import math

from appliance.errors import SettingsError
from appliance.settings.values import CertificateFiles, Side, TunnelSettings
from appliance.tls.certificates import read_credentials, signature_of
from appliance.tls.identity import DAYS_WARNING, RENEWAL_REMEDY, Identity

log = logging.getLogger("appliance.tunnel")

CHECK_SECONDS = 1.0
"""Seconds between two checks of the files."""


class CertificateReload:
    """Gives an end its identity, and checks its files for changes while the block runs, if it has any.

    A set that cannot be used, like one of which only the first file is written yet, changes nothing, is logged once,
    and is checked again until it is good.
    """

    def __init__(self, settings: TunnelSettings, role: Side) -> None:
        # Taken before they are read, so that a replacement meanwhile is noticed.
        self._signature = signature_of(settings.files) if settings.files else None
        self._identity = Identity.of(settings, role)
        self._files = settings.files
        self._link = settings.link
        self._role = role
        self._logged_days: int | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Identity:
        if self._files:
            loop = asyncio.get_running_loop()
            self._log_days()
            self._tasks.append(loop.create_task(self._run(self._files), name="certificate renewal"))
        return self._identity

    async def __aexit__(self, *failure: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _log_days(self) -> None:
        """Warn once a day that the certificate ends soon."""
        days = math.floor(self._identity.days_left())
        if days < DAYS_WARNING and days != self._logged_days:
            log.warning(f"this VM's certificate ends soon: {RENEWAL_REMEDY}", extra={"fields": {"days_left": days}})
        self._logged_days = days

    async def _run(self, files: CertificateFiles) -> None:
        logged = ""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            signature = signature_of(files)
            self._log_days()
            if signature == self._signature:
                continue
            try:
                self._identity.renew(read_credentials(files, self._link, self._role))
            except SettingsError as error:
                if str(error) != logged:
                    log.warning("new certificate files not taken yet", extra={"fields": {"cause": str(error)}})
                logged = str(error)
            else:
                log.info("certificate files taken", extra={"fields": {"certificate": str(files.certificate)}})
                self._signature, logged = signature, ""
                self._log_days()
