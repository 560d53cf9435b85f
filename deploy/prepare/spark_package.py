"""The package for ``spark-submit``: the appliance and the packages that it needs, in one zip for driver and executors.

The packages are those of the Python that runs it, as the lock names
them; PySpark is the cluster's own. ``submit.py`` at its top is the application.
"""

import importlib.metadata
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import appliance
from appliance.output import say

CHECKOUT = Path(appliance.__file__).parents[1]
OF_THE_CLUSTER = ("pyspark", "py4j")
APPLICATION = """\
# The application for spark-submit: the replicator; its options are those of `appliance replicate`.
import sys

from appliance.cli import main

sys.exit(main(["replicate", *sys.argv[1:]]))
"""

_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
_LEFT_OUT = re.compile(r"(^|/)__pycache__/|^\.\.")


def write(file: Path) -> None:
    """Write the package."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as package:
        package.writestr("submit.py", APPLICATION)
        for path in sorted(Path(appliance.__file__).parent.rglob("*")):
            name = str(path.relative_to(CHECKOUT))
            if path.is_file() and not _LEFT_OUT.search(name):
                package.write(path, name)
        for path, name in _dependencies():
            package.write(path, name)


def _dependencies() -> Iterator[tuple[Path, str]]:
    """The files of the installed packages that the lock names, each with its name in the package."""
    locked = set(_LOCKED.findall((CHECKOUT / "requirements.lock").read_text())) - set(OF_THE_CLUSTER)
    for distribution in importlib.metadata.distributions():
        if distribution.name.lower().replace("_", "-") not in locked:
            continue
        for file in distribution.files or ():
            path = Path(str(file.locate()))
            if not _LEFT_OUT.search(str(file)) and path.is_file():
                yield path, str(file)


def main(arguments: Sequence[str]) -> int:
    """Write the package, and say how to submit it."""
    if len(arguments) != 1 or not arguments[0].endswith(".zip"):
        say("usage: bin/spark-package FILE.zip", error=True)
        return 2
    file = Path(arguments[0])
    write(file)
    python = ".".join(map(str, sys.version_info[:2]))
    say(f"{file}: for executors with Python {python} and the cluster's PySpark; see docs/run/spark.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
