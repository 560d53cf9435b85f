"""Network namespaces, each a machine with its own addresses, ports, firewall, hosts file and resolver.

A name contains the run's process id and a random number. So runs can work at the same time, and a killed run's
leftovers differ from namespaces that another run still needs.
"""

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.runtime.child_process import killed_with_parent

SECONDS = 60.0
"""Timeout of one command, in seconds."""

_NAME = re.compile(r"appliance-(\d+)-[0-9a-f]{6}-[a-z-]+")
_CONFIGURATION = Path("/etc/netns")
_LOOKUPS = "hosts: files dns\n"


@dataclass(frozen=True, slots=True)
class Namespace:
    """A network namespace; ``namespaces`` makes and removes it."""

    name: str

    def command(self, *command: str) -> list[str]:
        """The command line that runs ``command`` in the namespace."""
        return ["ip", "netns", "exec", self.name, *command]

    def run(
        self, *command: str, given: str = "", environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the namespace, and keep its output; it may fail."""
        return _run(self.command(*command), given, environment)

    def say(self, *command: str, given: str = "", environment: Mapping[str, str] | None = None) -> str:
        """Run a command in the namespace that must succeed; return its output."""
        return _succeed(self.command(*command), given, environment)

    def ip(self, *arguments: str) -> str:
        """Run ``ip`` in the namespace."""
        return _succeed(["ip", "-n", self.name, *arguments])

    def configure(self, hosts: Mapping[str, str], nameserver: str) -> None:
        """Give it its own files in /etc, from the next command on; ``hosts`` maps names to addresses."""
        lines = {"localhost": "127.0.0.1", **hosts}.items()
        directory = _CONFIGURATION / self.name
        directory.mkdir(parents=True)
        (directory / "hosts").write_text("".join(f"{address} {name}\n" for name, address in lines))
        (directory / "resolv.conf").write_text(f"nameserver {nameserver}\n")
        (directory / "nsswitch.conf").write_text(_LOOKUPS)

    def create(self) -> None:
        """Create it, with its loopback up, and without forwarding between networks, whatever this machine's setting."""
        _succeed(["ip", "netns", "add", self.name])
        self.ip("link", "set", "lo", "up")
        self.say("sh", "-c", "echo 0 >/proc/sys/net/ipv4/ip_forward")

    def remove(self) -> None:
        """Remove it with its processes and files; do nothing if it does not exist."""
        for pid in _run(["ip", "netns", "pids", self.name]).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _run(["ip", "netns", "delete", self.name])
        shutil.rmtree(_CONFIGURATION / self.name, ignore_errors=True)


@contextlib.contextmanager
def namespaces(roles: Sequence[str]) -> Iterator[list[Namespace]]:
    """New namespaces, by their roles; removed after the block, with their links.

    Raises:
        RuntimeError: the kernel refuses them.
    """
    for name in _left_behind():
        Namespace(name).remove()
    run = f"appliance-{os.getpid()}-{secrets.token_hex(3)}"
    made = [Namespace(f"{run}-{role}") for role in roles]
    with contextlib.ExitStack() as undo:
        for namespace in made:
            undo.callback(namespace.remove)
            namespace.create()
        yield made


def _left_behind() -> set[str]:
    """The namespaces that ended runs have left."""
    configured = {path.name for path in _CONFIGURATION.iterdir()} if _CONFIGURATION.is_dir() else set()
    listed = {line.split()[0] for line in _run(["ip", "netns", "list"]).stdout.splitlines() if line}
    matches = [match for match in map(_NAME.fullmatch, configured | listed) if match]
    return {match[0] for match in matches if not Path("/proc", match[1]).exists()}


def _run(
    command: Sequence[str], given: str = "", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        killed_with_parent(command),
        input=given,
        capture_output=True,
        text=True,
        env=environment,
        timeout=SECONDS,
        check=False,
    )


def _succeed(command: Sequence[str], given: str = "", environment: Mapping[str, str] | None = None) -> str:
    outcome = _run(command, given, environment)
    if outcome.returncode:
        said = (outcome.stderr.strip() or outcome.stdout.strip()).splitlines()[-5:]
        raise RuntimeError(f"{' '.join(command)}: status {outcome.returncode}: {'; '.join(said)}")
    return outcome.stdout
