"""The folders of imported links: each appears with its setenv.sh whole, and none is overwritten."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from appliance.errors import SettingsError

SETTINGS = "setenv.sh"


def write_folders(out: Path, folders: Mapping[str, str]) -> None:
    """Write the text of each folder's setenv.sh, readable for its owner alone.

    Raises:
        SettingsError: a folder exists, or the system does not permit it.
    """
    there = [out / folder for folder in folders if os.path.lexists(out / folder)]
    if there:
        cure = "exists, and is not overwritten: remove it, or choose another --out"
        raise SettingsError([f"{path}: {cure}" for path in there])
    for folder, text in folders.items():
        try:
            out.mkdir(parents=True, exist_ok=True)
            _write(out, folder, text)
        except OSError as error:
            raise SettingsError([f"{out / folder}: cannot be written: {error.strerror}"]) from error


def _write(out: Path, folder: str, text: str) -> None:
    new = Path(tempfile.mkdtemp(dir=out, prefix=f".{folder}-"))
    try:
        with open(os.open(new / SETTINGS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A folder that has come meanwhile has content, and then this fails.
        new.rename(out / folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
