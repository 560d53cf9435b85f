"""Port conflicts with other links on this VM, whose folders lie beside this one."""

import contextlib
import errno
import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from appliance.settings.target import Target
from deploy.render.compose import COMPOSE_FILE
from deploy.render.vm import PortMapping

_PORT = re.compile(r'^ +- "(\S+:\d+):\d+"$', re.MULTILINE)


def port_conflicts(folder: Path, wanted: Sequence[PortMapping]) -> list[str]:
    """A fault for each port that a link in a folder beside this one also publishes, or on which another program
    listens."""
    ours = _published_in(folder)
    faults = [
        f"{one.variable}: the link in {other} publishes {at} too: choose another"
        for other in sorted(folder.resolve().parent.glob(f"*/{COMPOSE_FILE}"))
        if other.parent != folder.resolve()
        for at in _published_in(other.parent)
        for one in wanted
        if one.clashes_with(at)
    ]
    busy = [one for one in wanted if one.at not in ours and _is_taken(one.at)]
    return faults or [f"{one.variable}: another program has {one.at}: stop it, or choose another" for one in busy]


def _published_in(folder: Path) -> set[Target]:
    """The ports that a folder's docker-compose.yml publishes; none if it cannot be read."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return set(_targets((folder / COMPOSE_FILE).read_text("utf-8")))
    return set()


def _targets(text: str) -> Iterator[Target]:
    for at in _PORT.findall(text):
        with contextlib.suppress(ValueError):
            yield Target.parse(at)


def _is_taken(at: Target) -> bool:
    """True when a program listens there. An address that this VM does not have counts as free; Docker will refuse
    it."""
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((at.host, at.port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
