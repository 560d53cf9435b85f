"""The files of a support bundle."""

import tarfile
from collections.abc import Mapping
from pathlib import Path


def contents(bundle: Path) -> Mapping[str, bytes]:
    """The files of a bundle by their names, without the folder in which all of them are."""
    with tarfile.open(bundle) as archive:
        return {each.name.partition("/")[2]: archive.extractfile(each).read() for each in archive.getmembers()}
