"""A real Kubernetes of a single node, in namespaces of its own::

    async with node(images=[archive]) as cluster:
        cluster.kubectl("apply", "--filename", "manifest.yaml")

No port, mount, rule or process of the machine changes. The node ends with the process that has started it.
"""

import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from testbed.kubernetes.layout import NAME, Layout
from testbed.kubernetes.pause import pause_image
from testbed.kubernetes.programs import components, coredns
from testbed.kubernetes.supervisor import KEPT_IN, remove, sweep
from testbed.kubernetes.tools import search_path
from testbed.process import OwnedProcess

_READY_SECONDS = 180.0
_SECONDS = 300.0
"""Timeout of one command, in seconds."""
_REPORTED_LINES = 15


class Node:
    """A running node."""

    def __init__(self, layout: Layout, pid: int) -> None:
        self.layout = layout
        self.pid = pid

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which the clients of Kubernetes are found, and reach this node only."""
        own = {"KUBECONFIG": self.layout.kubeconfig("admin"), "HOME": str(self.layout.directory)}
        return {**os.environ, **search_path(), **own}

    def command(self, *command: str) -> list[str]:
        """The command line that runs ``command`` in the node's network, with its names."""
        network = ["nsenter", f"--net=/proc/{self.pid}/ns/net", "unshare", "--mount"]
        return [*network, "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(self.layout.hosts), *command]

    def run(self, *command: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a client on the node; it may fail."""
        return subprocess.run(
            self.command(*command),
            input=given,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=_SECONDS,
            check=False,
        )

    def say(self, *command: str, given: str = "") -> str:
        """Run a client that must succeed; return its output.

        Raises:
            RuntimeError: it failed; the text ends with its last lines.
        """
        outcome = self.run(*command, given=given)
        if outcome.returncode:
            said = (outcome.stdout + outcome.stderr).strip().splitlines()[-15:]
            raise RuntimeError("\n    ".join([f"{' '.join(command)}: status {outcome.returncode}", *said]))
        return outcome.stdout

    def kubectl(self, *arguments: str, given: str = "") -> str:
        """Run ``kubectl``; return its output."""
        return self.say("kubectl", *arguments, given=given)

    def helm(self, *arguments: str) -> str:
        """Run ``helm``; return its output."""
        return self.say("helm", *arguments)

    def report(self) -> str:
        """All pods, and the last lines of each container."""
        pods = self.run("kubectl", "get", "pods", "--all-namespaces", "--output=wide").stdout
        names = [line.split()[:2] for line in pods.splitlines()[1:]]
        tail = ("--all-containers", "--prefix", f"--tail={_REPORTED_LINES}")
        logs = [
            self.run("kubectl", "logs", f"--namespace={namespace}", name, *tail).stdout for namespace, name in names
        ]
        return "\n".join([pods, *logs])

    def import_image(self, archive: Path) -> None:
        """Import the images of an archive."""
        self.say("ctr", "--address", self.layout.containerd, "--namespace", "k8s.io", "images", "import", str(archive))

    def configure(self, names: Mapping[str, str], addresses: Iterable[str]) -> None:
        """Give the node, but no pod, more names with their addresses, and more addresses of its own."""
        for address in addresses:
            self.say("ip", "address", "replace", f"{address}/32", "dev", "lo")
        with self.layout.hosts.open("a") as hosts:
            hosts.writelines(f"{address} {name}\n" for name, address in names.items())


@contextlib.asynccontextmanager
async def node(
    *, api_only: bool = False, images: Sequence[Path] = (), forwarded: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[Node]:
    """A new node, ready; it has these images, and asks other DNS servers for the names of ``forwarded`` domains.

    With ``api_only`` it starts no pods, and is ready sooner.

    Raises:
        ProcessFailed: it does not start; the text ends with its output.
    """
    sweep()
    directory = KEPT_IN / f"appliance-{os.getpid()}-{secrets.token_hex(3)}-node"
    started = [f"--forward={domain}={server}" for domain, server in forwarded.items()]
    options = ["--api-only"] if api_only else [*started, *map(str, [pause_image(), *images])]
    environment = {**os.environ, **search_path(components(), *(() if api_only else (coredns(),)))}
    layout = Layout(directory)
    environment["KUBECONFIG"] = layout.kubeconfig("admin")
    directory.mkdir(mode=0o700)
    layout.hosts.write_text(f"127.0.0.1 localhost {NAME}\n")
    try:
        process = await OwnedProcess.start("node", _supervisor(directory, options), directory / "node.log", environment)
        try:
            pid = (await process.wait_for_line(r"^pid \d+$", _READY_SECONDS)).split()[1]
            await process.wait_for_line("^ready$", _READY_SECONDS)
            yield Node(layout, int(pid))
        finally:
            await process.stop()
    finally:
        remove(directory)


def _supervisor(directory: Path, options: Iterable[str]) -> list[str]:
    return [sys.executable, "-m", "testbed.kubernetes.supervisor", str(directory), *options]
