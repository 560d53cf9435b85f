"""Images as archives, in the layout of ``docker save``, which containerd imports."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_OF_ROOT: dict[str, Any] = {"uid": 0, "gid": 0, "uname": "root", "gname": "root", "mtime": 0}


def write_image(archive: Path, name: str, folder: Path, configuration: Mapping[str, object]) -> None:
    """Write an image with one layer: the files of ``folder``, all of root."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as packed:
        packed.add(folder, arcname=".", filter=lambda entry: entry.replace(**_OF_ROOT))
    content = layer.getvalue()
    described = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": configuration,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]},
    }
    config = json.dumps(described).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(archive, "w") as packed:
        for member, data in ((config_name, config), ("layer.tar", content), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(member)
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))
