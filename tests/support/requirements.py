"""The requirements of a suite on its machine."""

import os
import shutil
from collections.abc import Mapping


def missing(suite: str, purpose: str | None, packages: Mapping[str, str]) -> str | None:
    """The missing requirement of ``bin/test --<suite>`` in one line; None if it can run.

    Args:
        suite: its name.
        purpose: its work that only root may do; None: any user may run it.
        packages: the Debian package of each program.
    """
    if purpose and os.geteuid() != 0:
        return f"bin/test --{suite} {purpose}: run it as root"
    absent = [package for program, package in packages.items() if shutil.which(program) is None]
    return f"bin/test --{suite} needs more programs: apt-get install {' '.join(absent)}" if absent else None
