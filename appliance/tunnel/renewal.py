"""Takes new certificate files as they come, without ending a connection: those that stand keep what they began with."""

import asyncio
import logging
from typing import Self

from appliance.errors import SettingsError
from appliance.settings.values import CertificateFiles, Side
from appliance.tunnel.certificate_files import read_credentials, signature_of
from appliance.tunnel.identity import Identity

log = logging.getLogger("appliance.tunnel")

LOOK_SECONDS = 1.0
"""How often the files are looked at."""


class Renewal:
    """Looks at the files as long as its block runs; without files it has nothing to do.

    A set that cannot be used, like one of which only the first file is written yet, changes nothing, is told once, and
    is looked at again until it is good.
    """

    def __init__(self, files: CertificateFiles | None, identity: Identity, link: str, role: Side) -> None:
        self._files = files
        self._identity = identity
        self._link = link
        self._role = role
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        if self._files:
            loop = asyncio.get_running_loop()
            self._tasks.append(loop.create_task(self._run(self._files), name="certificate renewal"))
        return self

    async def __aexit__(self, *failure: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, files: CertificateFiles) -> None:
        taken, told = signature_of(files), ""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            seen = signature_of(files)
            if seen == taken:
                continue
            try:
                self._identity.renew(read_credentials(files, self._link, self._role))
            except SettingsError as error:
                if str(error) != told:
                    log.warning("new certificate files not taken yet", extra={"fields": {"cause": str(error)}})
                told = str(error)
            else:
                log.info("certificate files taken", extra={"fields": {"certificate": str(files.certificate)}})
                taken, told = seen, ""
