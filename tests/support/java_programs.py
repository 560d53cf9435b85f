"""Compile our Java sources by Janino, which is part of PySpark, so that a JRE suffices.

Janino infers no type arguments of an overridden method, and knows no diamond operator.
"""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

from testbed.jars import java
from tests.support.patience import PATIENCE

_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"


def compiled(source: Path, classpath: str, directory: Path) -> Path:
    """The directory of the class files of one source, for a class path."""
    arguments = ["-d", str(directory), "-classpath", classpath, str(source)]
    command = [java(), "-cp", os.pathsep.join(map(str, _janino())), _COMPILER, *arguments]
    subprocess.run(command, check=True, timeout=PATIENCE)
    return directory


def _janino() -> list[Path]:
    pyspark = find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.submodule_search_locations is not None
    (home,) = pyspark.submodule_search_locations
    return [next((Path(home) / "jars").glob(f"{name}-*.jar")) for name in ("janino", "commons-compiler")]
