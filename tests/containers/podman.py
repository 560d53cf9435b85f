"""Podman on one of the machines, independent of this machine's own, and of the Docker engine there.

Its networks, its containers and its mounts are in the machine's network namespace and in namespaces of its own. They
end with the process that holds these.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from appliance.settings.target import Target
from testbed.process import OwnedProcess
from tests.support.namespace import Namespace

_KEPT_IN = Path("/var/tmp")
"""A directory on a disk, as for the Docker engines."""
_SECONDS = 300.0
"""Timeout of one command, in seconds; loading an image takes longest."""

_OWN = ("/run", "/var/lib/cni", "/var/lib/containers")
_HOLD = (
    f"for own in {' '.join(_OWN)}; do mkdir -p $own && mount -t tmpfs own $own; done; echo ready; exec sleep infinity"
)


@dataclass(frozen=True, slots=True)
class Podman:
    """Podman of a machine; ``podman`` gives it a place, and removes what it has made."""

    directory: Path
    pid: int

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``podman``; it may fail."""
        inside = ["nsenter", f"--target={self.pid}", "--net", "--mount", "--pid", "--"]
        options = [f"--root={self.directory}/images", "--runroot=/run/containers", "--network-config-dir=/run/networks"]
        return subprocess.run(
            [*inside, "podman", *options, *arguments],
            env={"PATH": os.environ["PATH"], "CONTAINERS_CONF": f"{self.directory}/containers.conf"},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def podman(self, *arguments: str) -> str:
        """Run ``podman``, which must succeed; return its output."""
        outcome = self.run(*arguments)
        if outcome.returncode:
            said = (outcome.stdout + outcome.stderr).strip().splitlines()[-15:]
            raise RuntimeError("\n    ".join([f"podman {' '.join(arguments)}: status {outcome.returncode}", *said]))
        return outcome.stdout.strip()


@contextlib.asynccontextmanager
async def podman(machine: Namespace, dns: Target) -> AsyncIterator[Podman]:
    """Podman, whose containers ask this DNS server; removed after the block with everything that it made.

    Raises:
        ProcessFailed: the kernel refuses the namespaces.
    """
    # Named as an engine's directory: what a killed run leaves is swept with those.
    directory = _KEPT_IN / f"{machine.name}-podman"
    directory.mkdir(mode=0o700)
    (directory / "containers.conf").write_text(
        f'[containers]\ndns_servers = ["{dns.host}"]\n[engine]\ncgroup_manager = "cgroupfs"\n'
    )
    holder = await OwnedProcess.start("podman", _holding(machine), directory / "log")
    try:
        await holder.wait_for_line("^ready$", _SECONDS)
        [held] = psutil.Process(holder.pid).children()
        made = Podman(directory, held.pid)
        try:
            yield made
        finally:
            made.run("pod", "rm", "--all", "--force")
    finally:
        await holder.kill()
        shutil.rmtree(directory, ignore_errors=True)


def _holding(machine: Namespace) -> Sequence[str]:
    isolated = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["nsenter", f"--net=/run/netns/{machine.name}", "unshare", *isolated, "sh", "-c", _HOLD]
