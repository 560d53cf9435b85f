"""``python versions.py``: the versions of a machine and of its Python environment. Standard library only.

It runs on the VM, and with the same text in a container, which has no file of this folder.
"""

import importlib.metadata
import platform
import subprocess

_PROGRAMS = (["java", "-version"], ["docker", "--version"], ["docker-compose", "--version"], ["openssl", "version"])


def _said(command: list[str]) -> str:
    """The first line of what a program says about itself."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    return (done.stdout.splitlines() or [""])[0]


def main() -> None:
    """Print a line for each."""
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    print(f"kernel: {platform.platform()} {platform.version()}", f"system: {system}", sep="\n")
    print(f"python: {platform.python_implementation()} {platform.python_version()}")
    print(*(f"{command[0]}: {_said(command)}" for command in _PROGRAMS), sep="\n")
    found = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    print(*(f"{name}: {version}" for name, version in sorted(found.items())), sep="\n")


if __name__ == "__main__":
    main()
