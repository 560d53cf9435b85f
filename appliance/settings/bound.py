"""The bound of a link, MAX_BYTES_PER_SECOND, which is read again while the replicator runs."""

import asyncio
import logging
from collections.abc import Callable

from appliance.errors import SettingsError

log = logging.getLogger("appliance.replicator")


class Bound:
    """``bytes_per_second`` is the present bound; 0: none.

    A file may be half written when it is read, so a new value is used when it has been read twice.
    """

    def __init__(self, bytes_per_second: int, read: Callable[[], int]) -> None:
        """``read`` gives what the settings say now, or raises SettingsError."""
        self.bytes_per_second = bytes_per_second
        self._read = read
        self._seen = bytes_per_second
        self._logged = ""

    async def follow(self, seconds: float, changed: Callable[[int], None]) -> None:
        """Read the settings every ``seconds``, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            if self.read_again():
                log.info("bound changed", extra={"fields": {"bytes_per_second": self.bytes_per_second}})
                changed(self.bytes_per_second)

    def read_again(self) -> bool:
        """Read once; True if another bound holds now. Unreadable settings change nothing, and are logged once."""
        try:
            read = self._read()
        except SettingsError as error:
            if str(error) != self._logged:
                log.warning(f"the settings cannot be read again, the bound stays: {error}")
            self._logged = str(error)
            return False
        self._logged = ""
        seen, self._seen = self._seen, read
        if read != seen or read == self.bytes_per_second:
            return False
        self.bytes_per_second = read
        return True
