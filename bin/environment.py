"""Starts a module of this checkout in a Python environment of its own, which the first start makes.

::

    environment.py [--java] LOCK MODULE [ARGUMENT...]

The environment holds exactly what the lock file LOCK lists, every download checked against the lock's hashes. It lies
in the user's cache directory, under a name made from the lock's text and from what Python this is, so that another lock
or another Python gets another environment. ``--java`` asks for a Java 17 or newer first.

Everything is installed from wheels. What SOURCE_ONLY names has none: it is built once, for all locks that list it, in
an environment of its own, which holds what BUILD_LOCK lists, by hash too. pip fetches nothing for a
build (``--no-build-isolation``), and builds nothing else (``--only-binary``).

Law: an environment that holds the file ``complete`` is whole; one without it is rubbish, whoever left it there. The
file is written last. Only who holds the lock on the file beside the environment makes or removes anything; the children
inherit that lock, so that it outlives a killed parent for as long as they still write. Who makes an environment may
take the lock of the one that builds for it, never the other way round.

This runs before anything is installed: standard library only, late imports because every start waits for them, and the
grammar of Python 3.6, so that an older Python gets as far as being told that it is too old.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON_MINIMUM = (3, 11)
JAVA_MINIMUM = 17

BUILD_LOCK = os.path.join(CHECKOUT, "requirements-build.lock")
SOURCE_ONLY = ("pyspark",)
"""The packages that are published as a source alone; their build needs no more than BUILD_LOCK lists."""

LOCKED = ("--no-deps", "--require-hashes", "--only-binary", ":all:")
"""How pip takes a lock: these versions, these hashes, nothing besides, and nothing built."""

INSTALL_PYTHON = {
    "apt-get": "apt-get install python3.11 python3.11-venv",
    "dnf": "dnf install python3.11",
    "brew": "brew install python@3.11",
}
INSTALL_VENV = {
    "apt-get": f"apt-get install python3.{sys.version_info[1]}-venv",
    "dnf": "dnf install python3-libs",
    "brew": "brew install python",
}
INSTALL_JAVA = {
    "apt-get": "apt-get install default-jre-headless",
    "dnf": "dnf install java-latest-openjdk-headless",
    "brew": "brew install --cask temurin",
}


class StartError(Exception):
    """It cannot go on; the text is one line that says what to change."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def main(arguments: "list[str]") -> None:
    """Check the machine, make the environment if need be, and become the module."""
    needs_java = arguments[:1] == ["--java"]
    arguments = arguments[1:] if needs_java else arguments
    if len(arguments) < 2:
        raise StartError("usage: environment.py [--java] LOCK MODULE [ARGUMENT...]")
    check_python()
    if needs_java:
        check_java()
    try:
        python = environment(arguments[0])
    except OSError as error:
        raise StartError(
            f"{error.filename}: {error.strerror} (XDG_CACHE_HOME says where environments are kept)"
        ) from error
    os.environ["PYTHONPATH"] = CHECKOUT
    os.execv(python, [python, "-m", *arguments[1:]])


def check_python() -> None:
    """Refuse, unless this Python is new enough."""
    if sys.version_info[:2] < PYTHON_MINIMUM:
        found = f"{sys.version_info[0]}.{sys.version_info[1]}"
        how = f"{install(INSTALL_PYTHON)}, then start again with PYTHON=python3.11 before the command"
        raise StartError(f"Python 3.11 or newer is needed, {sys.executable} is {found}: {how}")


def check_java() -> None:
    """Refuse, unless the ``java`` of JAVA_HOME, or without that the one of PATH, is new enough."""
    import re
    import subprocess

    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    try:
        answer = subprocess.run([java, "-version"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, check=False)
        version = re.search(rb'version "(?:1\.)?(\d+)', answer.stderr)
    except OSError:
        version = None
    if version is None or int(version.group(1)) < JAVA_MINIMUM:
        found = f"{java} is {version.group(1).decode()}" if version else f"there is no working {java}"
        again = ", then let JAVA_HOME name it" if home else ""
        raise StartError(f"Java {JAVA_MINIMUM} or newer is needed, {found}: {install(INSTALL_JAVA)}{again}")


def environment(lock: str) -> str:
    """The path of the Python in which all of ``lock`` is installed; made if it is not there yet."""
    text = read(lock)
    sources, wheels = divided(text)
    made_from = [text, read(BUILD_LOCK)] if sources else [text]

    def fill(directory: str, alone: int) -> None:
        ready = built(sources) if sources else []
        make_venv(directory, alone)
        tell(f"installing {os.path.basename(lock)} into it; this can take a minute")
        install_locked(directory, wheels, lock, alone)
        if ready and pip(directory, ["install", "--no-deps", "--no-index", *ready], alone):
            raise StartError(f"cannot install {' '.join(ready)}, pip says why above", exit_code=1)

    return python_of(made(made_from, fill))


def built(sources: str) -> "list[str]":
    """The wheels built from ``sources``, entries of a lock; built if they are not there yet."""
    build_lock = read(BUILD_LOCK)

    def fill(directory: str, alone: int) -> None:
        make_venv(directory, alone)
        install_locked(directory, build_lock, BUILD_LOCK, alone)
        tell(f"building {', '.join(SOURCE_ONLY)} from source; this can take a minute")
        # No cache: pip's own may hold a wheel that was built with something else. No compression: jars are compressed.
        options = ["--no-cache-dir", "--no-build-isolation", "--no-binary", ",".join(SOURCE_ONLY)]
        options += ["--config-settings", "--build-option=--compression=stored", "--wheel-dir", wheels_of(directory)]
        if pip(directory, ["wheel", *LOCKED, *options, "-r", written(directory, "sources.txt", sources)], alone):
            raise StartError("cannot build it, pip says why above; start again to try again", exit_code=1)

    wheels = wheels_of(made([build_lock, sources], fill))
    return [os.path.join(wheels, name) for name in sorted(os.listdir(wheels))]


def divided(lock: str) -> "tuple[str, str]":
    """The entries of a lock's text whose packages have to be built, and the others."""
    import re

    names = tuple(f"{name}==" for name in SOURCE_ONLY)
    entries = re.split(r"\n(?=\S)", lock)
    return (
        "\n".join(entry.strip() for entry in entries if entry.startswith(names)),
        "\n".join(entry for entry in entries if not entry.startswith(names)),
    )


def made(made_from: "list[str]", fill: "Callable[[str, int], None]") -> str:
    """The directory of the environment that is made from these texts and this Python, by ``fill`` if need be."""
    import hashlib

    identity = [*made_from, sys.version, sys.base_prefix, sys.platform, os.uname().machine]
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()
    directory = os.path.join(cache_directory(), digest[:20])
    if not is_complete(directory):
        make_alone(directory, fill)
    return directory


def cache_directory() -> str:
    """Where the environments are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(base), "kafka-cloud-replicator")


def python_of(directory: str) -> str:
    """The Python program of the environment in ``directory``."""
    return os.path.join(directory, "bin", "python")


def wheels_of(directory: str) -> str:
    """Where an environment keeps what was built in it."""
    return os.path.join(directory, "wheels")


def is_complete(directory: str) -> bool:
    """Whether the environment is whole, and the Python that it was made with still there."""
    return os.path.exists(os.path.join(directory, "complete")) and os.access(python_of(directory), os.X_OK)


def make_alone(directory: str, fill: "Callable[[str, int], None]") -> None:
    """Make the environment, unless whoever held its lock before us has."""
    import fcntl
    import shutil

    os.makedirs(os.path.dirname(directory), exist_ok=True)
    with open(directory + ".lock", "w") as alone:
        try:
            fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("waiting for another start, which is making the Python environment")
            fcntl.flock(alone, fcntl.LOCK_EX)
        if is_complete(directory):
            return
        if os.path.exists(directory):
            tell(f"removing the unfinished Python environment {directory}")
            shutil.rmtree(directory)
        make(directory, fill, alone.fileno())


def make(directory: str, fill: "Callable[[str, int], None]", alone: int) -> None:
    """Make the environment; the children inherit the file descriptor ``alone``."""
    import importlib.util
    import time

    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        raise StartError(f"the modules venv and ensurepip of {sys.executable} are missing: {install(INSTALL_VENV)}")
    begun = time.monotonic()
    tell(f"making a Python environment in {directory} (only at the first start)")
    fill(directory, alone)
    with open(os.path.join(directory, "complete"), "w"):
        tell(f"the Python environment is ready after {time.monotonic() - begun:.0f} s")


def make_venv(directory: str, alone: int) -> None:
    """An environment with pip, which is the one that came with this Python."""
    import subprocess

    command = [sys.executable, "-I", "-m", "venv", directory]
    if subprocess.call(command, pass_fds=[alone]):
        raise StartError(f"cannot make a Python environment, see above: {' '.join(command)}", exit_code=1)


def install_locked(directory: str, text: str, lock: str, alone: int) -> None:
    """Install from wheels what ``text`` lists, a part of ``lock``."""
    if pip(directory, ["install", *LOCKED, "-r", written(directory, "locked.txt", text)], alone):
        raise StartError(f"cannot install {lock}, pip says why above; start again to try again", exit_code=1)


def pip(directory: str, arguments: "list[str]", alone: int) -> int:
    """Run the environment's pip; what a build runs below it sees no more of the user's Python than pip does."""
    import subprocess

    command = [python_of(directory), "-I", "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    # An older pip builds in another way without it; a newer one has no such option, and ignores the variable.
    return subprocess.call([*command, *arguments], env={**clean, "PIP_USE_PEP517": "1"}, pass_fds=[alone])


def written(directory: str, name: str, text: str) -> str:
    """The path of a new file in ``directory``."""
    path = os.path.join(directory, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def read(path: str) -> str:
    """All of a text file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def install(commands: "dict[str, str]") -> str:
    """How to install something here; ``commands`` has the command of each package tool."""
    import shutil

    for tool, command in commands.items():
        if shutil.which(tool):
            needs_sudo = tool != "brew" and os.geteuid() != 0
            return f"install it with: {'sudo ' if needs_sudo else ''}{command}"
    return "install it, as with: " + ", or ".join(commands.values())


def tell(message: str) -> None:
    """One line to the user, beside the module's own output."""
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except StartError as error:
        tell(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
