"""The programs of a node that are built: ``kubeall``, with every component of Kubernetes and etcd, and ``coredns``.

No registry of packages has them as programs, but Go's has their sources, which go.sum pins. The first build on a
machine takes several processor minutes. It is of the lowest priority, and what it downloads and compiles is deleted.
"""

import os
import shutil
import tempfile
from pathlib import Path

from testbed.kept import kept
from testbed.kubernetes.tools import run

VERSION = "1.37.2"
"""The version of Kubernetes, which kubeall/go.mod names too."""

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet")
"""The names by which ``kubeall`` is called."""

_SOURCES = Path(__file__).parent
_FILES = ("main.go", "go.mod", "go.sum")
_BUILD_INFORMATION = "k8s.io/component-base/version"
_NO_COLLECTION = {"GOGC": "off", "GOMEMLIMIT": "4GiB"}
"""The compiler's own memory is not collected below this bound, which saves a third of its time."""

_GO_CACHES = ("GOCACHE", "GOMODCACHE")


def components() -> Path:
    """The directory of Kubernetes' components, each by its own name."""
    return kept("kubernetes", _inputs("kubeall"), _build_components)


def coredns() -> Path:
    """The directory of CoreDNS."""
    return kept("coredns", _inputs("coredns"), lambda directory: _build("coredns", directory))


def _inputs(program: str) -> str:
    sources = [(_SOURCES / program / name).read_text() for name in _FILES]
    return "\n".join([*sources, *_flags(program), run("go", "env", "GOARCH")])


def _flags(program: str) -> list[str]:
    """The options of the compiler and of the linker.

    Without inlining and without tables for debuggers the build takes half of the time. The version is one that clients
    compare with their own.
    """
    major, minor, _ = VERSION.split(".")
    stamped = {"gitVersion": f"v{VERSION}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    values = [f"-X {_BUILD_INFORMATION}.{name}={value}" for name, value in stamped.items()]
    linker = " ".join(["-s -w", *(values if program == "kubeall" else ())])
    return ["-trimpath", "-gcflags=all=-l -dwarf=false", "-ldflags", linker]


def _build_components(directory: Path) -> None:
    _build("kubeall", directory)
    for name in COMPONENTS:
        (directory / name).symlink_to("kubeall")


def _build(program: str, directory: Path) -> None:
    """Build with the caches of the environment if it names some, otherwise with new ones that are then deleted."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="appliance-go-") as name:
        caches = {variable: os.environ.get(variable, f"{name}/{variable}") for variable in _GO_CACHES}
        sources = Path(name) / program
        shutil.copytree(_SOURCES / program, sources)
        environment = {**os.environ, **caches, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -modcacherw", **_NO_COLLECTION}
        command = ["nice", "-n", "19", "go", "build", *_flags(program), "-o", str(directory / program), "."]
        run(*command, directory=sources, environment=environment)
