"""What the rendering has to know of the VM itself."""

from dataclasses import dataclass
from pathlib import Path

from appliance.settings.target import Target

IMAGE_USER = 10001
"""User and group of the image; what root prepares belongs to it, since nothing in a container runs as root."""


@dataclass(frozen=True, slots=True)
class Place:
    """One VM, and who prepares it.

    ``user`` and ``group`` are those of the containers, who must be able to read the files with secrets: whoever
    prepares, or the image's where that is root. ``cores`` is how many the VM has, ``folder`` the link's
    own (absolute), ``resolver`` its DNS server as a
    container reaches it (None: it has none). ``salt`` goes into what is published about files with secrets, so that
    nobody can try guesses on it.
    """

    user: int
    group: int
    cores: int
    folder: Path
    resolver: Target | None
    salt: str
