"""Secrets in files that others can read."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def disclosing(directory: Path, secrets: Iterable[str]) -> list[Path]:
    """The files in a directory that contain one of the secrets, and that users besides their owner can read."""
    hidden = [secret.encode() for secret in secrets]
    # Not by rglob, which fails if a directory is removed meanwhile, as brokers and Spark do.
    files = (Path(folder, name) for folder, _, names in os.walk(directory) for name in names)
    return [path for path in files if _discloses(path, hidden)]


def _discloses(path: Path, secrets: Iterable[bytes]) -> bool:
    with contextlib.suppress(FileNotFoundError):  # removed, or renamed, since it was listed
        if path.is_file() and path.stat().st_mode & 0o077:
            content = path.read_bytes()
            return any(secret in content for secret in secrets)
    return False
