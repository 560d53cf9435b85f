"""``python -m testbed.kubernetes.machine DIRECTORY [--api-only] [--forward DOMAIN=SERVER]... [IMAGE...]``: the node's
first process.

It runs in new namespaces, and has mounts, a network and certificates of its own. It starts the components, prints
``ready``, and ends when one of them ends: then the kernel ends all others with it.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.certificates import CertificateAuthority
from testbed.control_groups import own_groups
from testbed.kubernetes import components, layout
from testbed.kubernetes.layout import ADDRESS, API_SERVICE, DOMAIN, NAME, Layout
from testbed.kubernetes.tools import debian, run

_POLL_SECONDS = 0.1
_USERS = {
    "admin": ("admin", "system:masters"),
    "manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "proxy": ("system:kube-proxy", ""),
    "kubelet": (f"system:node:{NAME}", "system:nodes"),
    "tokens": ("service accounts", ""),
}
"""The clients of the API, each with its user and group. The last key signs the tokens of service accounts."""

_EMPTIED = ("/run", "/var/lib", "/var/log")
"""Directories of the machine in which components have files at fixed places."""


class Machine:
    """The components of a node, as processes of this one."""

    def __init__(self, own: Layout) -> None:
        self.layout = own
        self._processes: dict[int, str] = {}

    def start(self, *command: str) -> None:
        """Start a component; its output goes to its log."""
        name = command[0]
        with self.layout.log(name).open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._processes[process.pid] = name

    def wait(self) -> None:
        """Wait until a component ends, and reap the orphans of containers meanwhile; print how it ended."""
        while (name := self._processes.get((ended := os.wait())[0])) is None:
            pass
        status = os.waitstatus_to_exitcode(ended[1])
        last = self.layout.log(name).read_text(errors="replace").splitlines()[-5:]
        print("\n    ".join([f"{name} ended with status {status}", *last]), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Start all components, or the API server with what it needs; wait for the first that ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--api-only", action="store_true")
    parser.add_argument("--forward", action="append", default=[])
    parser.add_argument("images", nargs="*")
    asked = parser.parse_intermixed_args(arguments)
    own = Layout(asked.directory)
    machine = Machine(own)
    _mount(own)
    _connect()
    _certify(own)
    machine.start(*components.etcd(own))
    machine.start(*components.api_server(own))
    if not asked.api_only:
        _start_containerd(machine, asked.images)
    _until("kubectl", "get", "--raw", "/readyz")
    machine.start(*components.controller_manager(own))
    if not asked.api_only:
        _start_node(machine, dict(forward.split("=") for forward in asked.forward))
    _until("kubectl", "get", "serviceaccount", "default")
    print("ready", flush=True)
    machine.wait()


def _mount(own: Layout) -> None:
    """Mount what differs from the machine's own; nobody else sees it."""
    groups = own_groups()
    run("mount", "-t", "sysfs", "sysfs", "/sys")
    run("mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup")
    for group in groups:
        place = Path("/sys/fs/cgroup", group.folder)
        place.mkdir()
        run("mount", "-t", "cgroup", "-o", group.options, "cgroup", str(place))
    upper, work = own.directory / "etc", own.directory / "etc-work"
    upper.mkdir()
    work.mkdir()
    run("mount", "-t", "overlay", "-o", f"lowerdir=/etc,upperdir={upper},workdir={work}", "overlay", "/etc")
    for emptied in _EMPTIED:
        run("mount", "-t", "tmpfs", "tmpfs", emptied)
    run("mount", "--make-rshared", "/")
    Path("/etc/resolv.conf").unlink(missing_ok=True)
    Path("/etc/resolv.conf").touch()
    Path("/etc/hosts").write_text(own.hosts.read_text())


def _connect() -> None:
    """Give the node its address, and no way out."""
    run("hostname", NAME)
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{ADDRESS}/32", "dev", "lo")
    run("ip", "route", "add", "unreachable", "default")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _certify(own: Layout) -> None:
    authority = CertificateAuthority.create("node")
    own.write("ca.pem", authority.certificate_pem.decode())
    service = [f"kubernetes{rest}" for rest in ("", ".default", ".default.svc", f".default.svc.{DOMAIN}")]
    own.write("api.pem", authority.issue(("localhost", "127.0.0.1", ADDRESS, API_SERVICE, *service)).decode())
    for who, (user, group) in _USERS.items():
        own.write(f"{who}.pem", authority.issue_client(user, group).decode())
        own.write(f"{who}.kubeconfig", layout.kubeconfig(own, who))


def _start_containerd(machine: Machine, images: Sequence[str]) -> None:
    own = machine.layout
    (own.directory / "cni").mkdir()
    own.write("cni/pods.conflist", layout.pod_network())
    machine.start("containerd", "--config", own.write("containerd.toml", layout.containerd(own, debian())))
    _until("ctr", "--address", own.containerd, "version")
    for image in images:
        run("ctr", "--address", own.containerd, "--namespace", "k8s.io", "images", "import", image)


def _start_node(machine: Machine, forwarded: Mapping[str, str]) -> None:
    own = machine.layout
    machine.start(*components.scheduler(own))
    machine.start(*components.kubelet(own, own.write("kubelet.yaml", layout.kubelet(own))))
    machine.start("kube-proxy", "--config", own.write("kube-proxy.yaml", layout.kube_proxy(own)))
    machine.start("coredns", "-conf", own.write("Corefile", layout.corefile(own, forwarded)))
    for number, document in enumerate(layout.dns_service()):
        run("kubectl", "apply", "--filename", own.write(f"dns-{number}.json", document))
    _until("kubectl", "wait", "--for=condition=Ready", f"node/{NAME}", "--timeout=60s")


def _until(*command: str) -> None:
    """Repeat a command until it succeeds; whoever started this process has a deadline."""
    while subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1:])
