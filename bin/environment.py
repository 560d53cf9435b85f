"""Starts a module of this checkout in its own Python environment, which the first start makes.

::

    environment.py [--java] LOCK MODULE [ARGUMENT...]

The environment holds exactly the packages of the lock file LOCK, and every download is checked against the lock's
hashes. It lies in the user's cache directory. Its name is made from the lock's text and from this Python's identity, so
that another lock or another Python gets another environment. ``--java`` first requires Java 17 or newer. With ``-`` in
place of LOCK the module runs in this process, with the standard library only.

Everything is installed from wheels. The packages of SOURCE_ONLY have none: each is built once, for all locks that list
it, in a separate environment with the packages of BUILD_LOCK, which are also checked by hash. pip downloads nothing for
a build (``--no-build-isolation``), and builds no other packages (``--only-binary``). pip and a build see those of the
user's settings that name the origin of packages and the way there (INHERITED, INHERITED_OF_PIP). They see no settings
that change the installed packages or their directory.

Law: an environment with the file ``complete`` is complete; one without it is garbage. The file is written last, after a
check of the installed packages. The directories belong to the user who starts. Only the holder of the lock on the file
beside the environment makes or removes files. The children inherit that lock, so that it outlives a killed parent while
they still write. The maker of an environment may take the lock of the environment that builds for it, but not the
reverse.

This runs before any package is installed, so it uses the standard library only. It imports late, because every start
waits for imports. It uses the grammar of Python 3.6, so that an older Python can still print that it is too old.
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
"""The packages that are published as source only; their build needs only the packages of BUILD_LOCK."""

LOCKED = ("--no-deps", "--require-hashes", "--only-binary", ":all:")
"""pip's options for a lock: these versions and hashes only, and no builds."""

PLACES = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
TRUST = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
INHERITED = (*PLACES, *PROXIES, *(name.lower() for name in PROXIES), *TRUST, "LANG", "LANGUAGE")
"""The user's variables that pip and builds get, beside those that start with LC_."""

PACKAGES_FROM = ("index-url", "extra-index-url", "find-links", "no-index")
REACHED_BY = ("cert", "client-cert", "trusted-host", "proxy", "timeout", "default-timeout", "retries")
INHERITED_OF_PIP = PACKAGES_FROM + REACHED_BY
"""The user's settings of pip that it gets, from variables (PIP_INDEX_URL) and from pip's own files."""

MISSING = """
import importlib.metadata, sys
from pip._vendor.packaging.requirements import Requirement
for wanted in map(Requirement, sys.argv[1:]):
    try:
        fits = wanted.specifier.contains(importlib.metadata.version(wanted.name), prereleases=True)
    except importlib.metadata.PackageNotFoundError:
        fits = False
    if not fits and (wanted.marker is None or wanted.marker.evaluate()):
        print(wanted.name + str(wanted.specifier))
"""
"""A program for an environment's Python: of its arguments, it prints the requirements that are not installed."""

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
    """The start cannot continue; the text is one line that names the remedy."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def main(arguments: "list[str]") -> None:
    """Check the machine, make the environment if necessary, and execute the module."""
    needs_java = arguments[:1] == ["--java"]
    arguments = arguments[1:] if needs_java else arguments
    if len(arguments) < 2:
        raise StartError("usage: environment.py [--java] LOCK MODULE [ARGUMENT...]")
    check_python()
    if needs_java:
        check_java()
    if arguments[0] == "-":
        run_here(arguments[1:])
        return
    try:
        python = environment(arguments[0])
    except OSError as error:
        raise StartError(
            f"{error.filename}: {error.strerror} (XDG_CACHE_HOME sets the directory of the environments)"
        ) from error
    # Neither the module nor a Python that it starts imports files of the current directory.
    os.environ.update(PYTHONPATH=CHECKOUT, PYTHONSAFEPATH="1")
    os.execv(python, [python, "-m", *arguments[1:]])


def run_here(line: "list[str]") -> None:
    """Run the module without an environment."""
    import runpy

    sys.path.insert(0, CHECKOUT)
    sys.argv = line
    runpy.run_module(line[0], run_name="__main__", alter_sys=True)


def check_python() -> None:
    """Refuse, unless this Python is new enough."""
    if sys.version_info[:2] < PYTHON_MINIMUM:
        found = f"{sys.version_info[0]}.{sys.version_info[1]}"
        how = f"{install(INSTALL_PYTHON)}, then start again with PYTHON=python3.11 before the command"
        raise StartError(f"Python 3.11 or newer is needed, {sys.executable} is {found}: {how}")


def check_java() -> None:
    """Refuse, unless the ``java`` of JAVA_HOME, or otherwise of PATH, is new enough."""
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
        check_installed(directory, text, lock)

    return python_of(made(made_from, fill))


def built(sources: str) -> "list[str]":
    """The wheels built from ``sources``, entries of a lock; built if they are not there yet."""
    build_lock = read(BUILD_LOCK)

    def fill(directory: str, alone: int) -> None:
        make_venv(directory, alone)
        install_locked(directory, build_lock, BUILD_LOCK, alone)
        check_installed(directory, build_lock, BUILD_LOCK)
        tell(f"building {', '.join(SOURCE_ONLY)} from source; this can take a minute")
        # No cache: pip's own may hold a wheel from another build environment. No compression: jars are compressed.
        options = ["--no-cache-dir", "--no-build-isolation", "--no-binary", ",".join(SOURCE_ONLY)]
        options += ["--config-settings", "--build-option=--compression=stored", "--wheel-dir", wheels_of(directory)]
        if pip(directory, ["wheel", *LOCKED, *options, "-r", written(directory, "sources.txt", sources)], alone):
            raise StartError("cannot build it, pip says why above; start again to try again", exit_code=1)
        if len(os.listdir(wheels_of(directory))) != len(requirements(sources)):
            raise StartError(f"pip has not left in {wheels_of(directory)} what it built", exit_code=1)

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
    """The directory of the environment for these texts and this Python; ``fill`` makes it if necessary."""
    import hashlib

    identity = [*made_from, sys.version, sys.base_prefix, sys.platform, os.uname().machine]
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()
    directory = os.path.join(cache_directory(), digest[:20])
    check_owner(cache_directory())
    check_owner(directory)
    if not is_complete(directory):
        make_alone(directory, fill)
    return directory


def cache_directory() -> str:
    """The directory of all environments."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(base), "kafka-cloud-replicator")


def check_owner(directory: str) -> None:
    """Refuse a directory of another user, because its programs would run as us."""
    if os.path.exists(directory) and os.stat(directory).st_uid != os.geteuid():
        raise StartError(
            f"{directory} belongs to another user: remove it, or let XDG_CACHE_HOME name a directory of your own"
        )


def python_of(directory: str) -> str:
    """The Python program of the environment in ``directory``."""
    return os.path.join(directory, "bin", "python")


def wheels_of(directory: str) -> str:
    """The directory of the wheels that were built in an environment."""
    return os.path.join(directory, "wheels")


def is_complete(directory: str) -> bool:
    """True if the environment is complete, and its Python still exists."""
    return os.path.exists(os.path.join(directory, "complete")) and os.access(python_of(directory), os.X_OK)


def make_alone(directory: str, fill: "Callable[[str, int], None]") -> None:
    """Make the environment, unless the previous holder of the lock has done so."""
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
    os.sync()  # After a power failure, too, ``complete`` implies the other files.
    with open(os.path.join(directory, "complete"), "w"):
        tell(f"the Python environment is ready after {time.monotonic() - begun:.0f} s")


def make_venv(directory: str, alone: int) -> None:
    """Make an environment with the pip of this Python."""
    import subprocess

    command = [sys.executable, "-I", "-m", "venv", directory]
    if subprocess.call(command, env=inherited(), pass_fds=[alone]):
        raise StartError(f"cannot make a Python environment, see above: {' '.join(command)}", exit_code=1)


def install_locked(directory: str, text: str, lock: str, alone: int) -> None:
    """Install the packages of ``text``, a part of ``lock``, from wheels."""
    if pip(directory, ["install", *LOCKED, "-r", written(directory, "locked.txt", text)], alone):
        raise StartError(f"cannot install {lock}, pip says why above; start again to try again", exit_code=1)


def check_installed(directory: str, text: str, lock: str) -> None:
    """Refuse, unless all packages of ``text`` for this machine are installed, which pip's settings may have
    prevented."""
    import subprocess

    command = [python_of(directory), "-I", "-c", MISSING, *requirements(text)]
    missing = subprocess.run(command, env=inherited(), stdout=subprocess.PIPE, check=False)
    names = missing.stdout.decode().split()
    if missing.returncode or names:
        what = ", ".join(names) or "the packages"
        raise StartError(f"pip reports success, but has not installed {what} of {lock}: see `pip config list`", 1)


def requirements(text: str) -> "list[str]":
    """The requirements that a lock's text lists, without their hashes."""
    import re

    return [line.strip() for line in re.findall(r"^[A-Za-z0-9][^\\\n]*", text, re.MULTILINE)]


def pip(directory: str, arguments: "list[str]", alone: int) -> int:
    """Run the environment's pip; of the user's settings, pip and its builds see only INHERITED."""
    import subprocess

    settings = pip_settings(directory, arguments[0])
    # Without PIP_USE_PEP517 an older pip builds differently; a newer one does not have the option, and ignores it.
    own = {"PIP_USE_PEP517": "1", "PIP_CONFIG_FILE": os.devnull}
    command = [*pip_command(directory), "--quiet", *arguments]
    return subprocess.call(command, env={**inherited(), **settings, **own}, pass_fds=[alone])


def pip_settings(directory: str, command: str) -> "dict[str, str]":
    """INHERITED_OF_PIP as variables, for one of pip's commands; pip itself reads its files."""
    import ast
    import subprocess

    variables = {name: os.environ[name] for name in map(pip_variable, INHERITED_OF_PIP) if os.environ.get(name)}
    files = {name: os.environ[name] for name in ["PIP_CONFIG_FILE"] if name in os.environ}
    # A file may make pip quiet, and then the answer would be empty.
    environment = {**inherited(), **files, "PIP_QUIET": "0"}
    listed = subprocess.run(
        [*pip_command(directory), "config", "list"], env=environment, stdout=subprocess.PIPE, check=False
    )
    if listed.returncode:
        raise StartError("cannot read pip's settings, pip says why above", exit_code=1)
    of_files = dict(line.split("=", 1) for line in listed.stdout.decode().splitlines() if "=" in line)
    for name in INHERITED_OF_PIP:
        for key in (f"{command}.{name}", f"global.{name}"):
            if key in of_files:
                variables.setdefault(pip_variable(name), ast.literal_eval(of_files[key]))
    return variables


def pip_command(directory: str) -> "list[str]":
    """The command of the environment's pip; the empty option overrides another Python in pip's own files."""
    return [python_of(directory), "-I", "-m", "pip", "--python=", "--disable-pip-version-check", "--no-input"]


def pip_variable(setting: str) -> str:
    """The variable of one of pip's settings."""
    return "PIP_" + setting.upper().replace("-", "_")


def inherited() -> "dict[str, str]":
    """The user's variables that pip and builds get."""
    return {name: value for name, value in os.environ.items() if name in INHERITED or name.startswith("LC_")}


def written(directory: str, name: str, text: str) -> str:
    """Write a new file in ``directory``; return its path."""
    path = os.path.join(directory, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def read(path: str) -> str:
    """The content of a text file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def install(commands: "dict[str, str]") -> str:
    """The advice for installing a package; ``commands`` has the command of each package tool."""
    import shutil

    for tool, command in commands.items():
        if shutil.which(tool):
            needs_sudo = tool != "brew" and os.geteuid() != 0
            return f"install it with: {'sudo ' if needs_sudo else ''}{command}"
    return "install it, as with: " + ", or ".join(commands.values())


def tell(message: str) -> None:
    """Print one line for the user, separate from the module's own output."""
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except StartError as error:
        tell(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
