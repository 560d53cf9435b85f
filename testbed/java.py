"""The Java virtual machine that runs Ivy and the demo's brokers."""

import os
import shutil

from appliance.errors import ToolMissing


def java() -> str:
    """The path of the ``java`` program: the one of JAVA_HOME, else the first of PATH.

    Raises:
        ToolMissing: there is neither.
    """
    home = os.environ.get("JAVA_HOME")
    found = (shutil.which("java", path=os.path.join(home, "bin")) if home else None) or shutil.which("java")
    if found is None:
        raise ToolMissing("Java 17 or newer is missing: sudo apt-get install openjdk-17-jre-headless")
    return found
