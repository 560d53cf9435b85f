"""The programs whose output goes into the bundle: through Compose where this VM was prepared, else as processes."""

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from appliance.clock import utc_now
from appliance.settings.values import Route
from appliance.settings.variables import BY_NAME
from deploy.docker import compose_command
from deploy.support import versions
from deploy.support.logs import since
from deploy.support.program import BYTES_MAX, Output, output_of

_CHECKOUT = Path(__file__).parents[2]
_STATUS_SECONDS, _DOCTOR_SECONDS, _SECONDS = 60.0, 180.0, 30.0
_HOUR = timedelta(hours=1)
_VERSIONS = Path(versions.__file__)
_LOGS = ("docker", "logs", "--timestamps", "--since", "1h")
_PAGES = ("health", "status", "metrics")
_LISTENS = {"CONSOLE_LISTEN": "replicator", "TUNNEL_STATUS_LISTEN": "tunnel"}
_PORTS = {"gateway": {8080: "replicator", 8081: "destination"}, "tunnel": {8081: "source"}}
_PORTS_DIRECT = {"replicator": {8080: "replicator"}, "tunnel": {8081: "source"}}
"""The pages that a service's containers serve: their ports, and whose they are; without a gateway each its own."""

_STATUS = {"replicator": ["status"], "control-center": ["status"], "order": ["order", "status"]}
_FETCH = """\
import sys, urllib.error, urllib.request
try:
    page = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=10)
except urllib.error.HTTPError as error:
    page = error
except urllib.error.URLError as error:
    sys.exit(f"{sys.argv[1]}: {error.reason}")
sys.stdout.buffer.write(page.read())
"""
_NO_CONTAINER = "raise SystemExit('no container of the link is there')"
"""A program that only says so: Compose would build an image for the doctor, and that takes minutes."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of the bundle, and the program that writes it, with its time in seconds.

    ``whole`` takes what the program writes to stderr, too. Of a log only the last hour is taken.
    """

    file: str
    command: Sequence[str]
    seconds: float = _SECONDS
    whole: bool = False
    is_log: bool = False

    async def output(self) -> Output:
        """Run the program; a fault if it cannot be started."""
        try:
            output = await output_of(self.command, self.seconds, whole=self.whole, reads_stdin=self.is_log)
        except OSError as error:
            return Output(b"", f"not started: {error.strerror}")
        return replace(output, text=since(output.text, utc_now() - _HOUR)) if self.is_log else output


def log_part(number: int, file: str) -> Part:
    """The end of a log in a file, or from stdin for ``-``."""
    return Part(f"log-{number}.txt", ["tail", "-c", str(BYTES_MAX + 1), "--", file], _STATUS_SECONDS, is_log=True)


def is_prepared(folder: Path) -> bool:
    """True if this is the folder of a link whose containers this VM runs."""
    return (folder / "prepared").is_dir() and shutil.which(compose_command().split()[0]) is not None


def process_parts(env_file: Path, side: str, values: Mapping[str, str]) -> Iterator[Part]:
    """Without Compose: commands of this release, and the pages at the addresses in the settings."""
    is_complete = importlib.util.find_spec("pyspark") is not None  # not in the environment of the prepare scripts
    own = [sys.executable, "-m", "appliance.cli"] if is_complete else [str(_CHECKOUT / "bin" / "appliance")]
    settings = ("--env-file", str(env_file))
    if side != "source":
        yield Part("status.json", [*own, *_STATUS.get(side, ["status"]), "--json", *settings], _STATUS_SECONDS)
    yield Part("doctor.json", [*own, "doctor", side, "--json", *settings], _DOCTOR_SECONDS)
    is_direct = values.get("SOURCE_ROUTE", "").strip().lower() == Route.DIRECT
    for name, whose in _LISTENS.items():
        if is_direct and whose == "tunnel":
            continue
        address = (values.get(name) or BY_NAME[name].default or "").replace("0.0.0.0", "127.0.0.1")
        yield from _pages(whose, [sys.executable], address)
    environment = ["-I", str(_CHECKOUT / "bin" / "environment.py"), str(_CHECKOUT / "requirements.lock")]
    versions_of = [str(_VERSIONS)] if is_complete else [*environment, "deploy.support.versions"]
    yield Part("versions.txt", [sys.executable, *versions_of])
    yield from _of_checkout()


async def containers_here() -> list[str]:
    """The ids of the link's containers, of stopped ones as well."""
    return await _words([*compose_command().split(), "ps", "-a", "-q"])


async def environment_of(containers: Sequence[str]) -> dict[str, str]:
    """The variables that containers were started with."""
    shown = ["docker", "inspect", "--format", "{{range .Config.Env}}{{println .}}{{end}}", *containers]
    text = (await output_of(shown, _SECONDS)).text.decode("utf-8", "replace") if containers else ""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


async def compose_parts(containers: Sequence[str]) -> list[Part]:
    """With Compose: commands in the containers, what Docker knows of these, and their logs."""
    compose, program = compose_command().split(), await asyncio.to_thread(_VERSIONS.read_text)
    services = await _words([*compose, "config", "--services"])
    names = await _words(["docker", "inspect", "--format", "{{.Name}}", *containers]) if containers else []
    parts = [Part("containers.txt", [*compose, "ps", "-a"]), Part("versions.txt", [sys.executable, str(_VERSIONS)])]
    parts += [Part(f"log-{name.strip('/')}.txt", [*_LOGS, name.strip("/")], whole=True) for name in names]
    doctor = _doctor(compose, services) if containers else [sys.executable, "-c", _NO_CONTAINER]
    parts.append(Part("doctor.json", doctor, _DOCTOR_SECONDS))
    for service in services:
        inside = [*compose, "exec", "-T", service]
        if service != "doctor":
            parts.append(Part(f"versions-{service}.txt", [*inside, "python", "-c", program]))
        if service in _STATUS:
            status = [*inside, "appliance", *_STATUS[service], "--json"]
            parts.append(Part(f"status-by-{service}.json", status, _STATUS_SECONDS))
        ports = _PORTS_DIRECT if "gateway" not in services else _PORTS
        for port, whose in ports.get(service, {}).items():
            parts += _pages(whose, [*inside, "python"], f"127.0.0.1:{port}")
    return [*parts, *_of_checkout()]


def _doctor(compose: Sequence[str], services: Sequence[str]) -> list[str]:
    """The doctor in a container of its own, which starts no other; an order's has none."""
    if "order" in services:
        return [*compose, "exec", "-T", "order", "appliance", "doctor", "order", "--json"]
    side = "source" if "tunnel" in services else "destination"
    return [*compose, "run", "--rm", "--no-deps", "-T", "doctor", "appliance", "doctor", side, "--json"]


def _pages(whose: str, python: Sequence[str], address: str) -> list[Part]:
    return [Part(f"{whose}-{page}.txt", [*python, "-c", _FETCH, f"http://{address}/{page}"]) for page in _PAGES]


async def _words(command: Sequence[str]) -> list[str]:
    return (await output_of(command, _SECONDS)).text.decode("utf-8", "replace").split()


def _of_checkout() -> Iterator[Part]:
    if (_CHECKOUT / ".git").exists():
        yield Part("commit.txt", ["git", "-C", os.fspath(_CHECKOUT), "log", "-1", "--format=%H %cI"])
