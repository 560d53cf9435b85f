"""``python -m tests.releases``: write tests/released.json, the names that the last release promises to keep.

The changelog names the commit of that release; its code lists the names.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.releases import CHECKOUT, archived, last_release

RELEASED = CHECKOUT / "tests" / "released.json"
_PROMISES = CHECKOUT / "tests" / "promises.py"


def released(directory: Path) -> str:
    """The text of that file, for the last release by the changelog; its code is written below the directory."""
    section = last_release()
    code = archived(section.commit, directory / "code")
    variables = {**os.environ, "PYTHONPATH": str(code), "PYTHONSAFEPATH": "1"}
    listed = subprocess.run([sys.executable, _PROMISES], env=variables, stdout=subprocess.PIPE, check=True).stdout
    return json.dumps({"version": section.version, **json.loads(listed)}, indent=0) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        RELEASED.write_text(released(Path(name)))
