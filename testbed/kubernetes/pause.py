"""Busybox as an image: it keeps the namespaces of each pod, and is a small program for tests."""

import json
import shutil
from pathlib import Path

from testbed.kept import kept
from testbed.kubernetes.images import write_image
from testbed.kubernetes.layout import PAUSE_IMAGE
from testbed.kubernetes.tools import debian

_CONFIGURATION = {"Cmd": ["/bin/busybox", "sleep", "1000000"], "User": "65535:65535", "Env": ["PATH=/bin"]}


def pause_image() -> Path:
    """The archive of the image."""
    made_from = f"{debian().name} {PAUSE_IMAGE} {json.dumps(_CONFIGURATION)}"
    return kept("pause-image", made_from, _make) / "image.tar"


def _make(directory: Path) -> None:
    programs, temporary = directory / "root" / "bin", directory / "root" / "tmp"
    programs.mkdir(parents=True)
    shutil.copy2(debian() / "bin" / "busybox", programs)
    (programs / "sh").symlink_to("busybox")
    temporary.mkdir()
    temporary.chmod(0o1777)
    write_image(directory / "image.tar", PAUSE_IMAGE, directory / "root", _CONFIGURATION)
    shutil.rmtree(directory / "root")
