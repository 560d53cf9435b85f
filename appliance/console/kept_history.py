"""The file in which a link's history and events outlive the control center: private, bounded, and replaced whole.

The page goes on without it. What cannot be written is a line in the log, once; what cannot be read is set aside.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from appliance.console.model.history_bytes import BYTES_MAX, NotReadable, from_bytes, to_bytes
from appliance.console.watch import LinkWatch

log = logging.getLogger("appliance.console")

_NOT_KEPT = "The charts are not kept"
_EVERY = 60.0
"""Seconds between two writes: as much is lost when the control center is killed."""


class KeptHistory:
    """The file ``<link>.history`` in ``folder``; without a folder the history ends with the process."""

    def __init__(self, folder: Path | None, link: str, watch: LinkWatch) -> None:
        self._folder = folder
        self._link = link
        self._watch = watch

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Read the file, and write it at the end of the block."""
        try:
            if self._folder is not None:
                self._folder = self._folder.expanduser()
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._read(self._folder / f"{self._link}.history")
        except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home
            self._say(f"The charts end with this control center: {error}")
            self._folder = None
        yield
        self._write()

    async def keep(self) -> None:
        """Write the file once a minute."""
        while True:
            await asyncio.sleep(_EVERY)
            self._write()

    def _read(self, file: Path) -> None:
        try:
            with contextlib.suppress(FileNotFoundError), file.open("rb") as opened:
                self._watch.history, self._watch.events = from_bytes(self._link, opened.read(BYTES_MAX + 1))
        except NotReadable as error:
            aside = file.replace(file.with_name(f"{self._link}.set-aside"))
            self._say(f"The charts begin anew: {file.name} cannot be read and was set aside as {aside}: {error}")

    def _write(self) -> None:
        if self._folder is None:
            return
        new = self._folder / f"{self._link}.new"
        try:
            with open(new, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(to_bytes(self._link, self._watch.history, self._watch.events))
            new.replace(self._folder / f"{self._link}.history")
            if self._watch.history_note.startswith(_NOT_KEPT):
                self._watch.history_note = ""
        except OSError as error:
            with contextlib.suppress(OSError):
                new.unlink()
            self._say(f"{_NOT_KEPT}: {error}")

    def _say(self, note: str) -> None:
        if note != self._watch.history_note:
            log.warning(note)
        self._watch.history_note = note
