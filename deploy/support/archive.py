"""The file of a bundle: for its owner only, under its name once it is whole, or not there at all."""

import contextlib
import io
import os
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from appliance.errors import ApplianceError

_MODE = 0o600


def packed(folder: str, files: Mapping[str, bytes], to: IO[bytes], now: int) -> None:
    """Write the files below a folder as a .tar.gz; ``now`` is their time in seconds since the epoch."""
    with tarfile.open(fileobj=to, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode, member.mtime = len(content), _MODE, now
            archive.addfile(member, io.BytesIO(content))


def written(directory: Path, name: str, files: Mapping[str, bytes], now: int) -> Path:
    """Write such a file; its name gets a part by chance, so that several can be written at once.

    Raises:
        ApplianceError: it cannot be written, and nothing is left of it.
    """
    partial = Path()
    try:
        descriptor, partial_name = tempfile.mkstemp(".tar.gz", f".{name}-", directory)  # mode 0600
        partial = Path(partial_name)
        with open(descriptor, "wb") as file:
            packed(name, files, file, now)
            file.flush()
            os.fsync(file.fileno())
        return partial.rename(partial.with_name(partial.name.removeprefix(".")))
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError):
            raise ApplianceError(f"{directory}: cannot write the bundle: {error.strerror}") from error
        raise
