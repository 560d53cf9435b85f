"""A policy class of our own for a broker (KIP-108), compiled by Janino, which PySpark brings: a JRE will do."""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

from testbed import jars
from testbed.jars import java
from tests.support.patience import PATIENCE

SETTING = ("create.topic.policy.class.name", "SegmentPolicy")
LEAST = 50 * 1024 * 1024
"""In bytes, the smallest segment that the policy lets a topic have, as Confluent Cloud's does."""

_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
# Janino infers no type arguments of a method that is overridden: configure takes a bare Map.
_SOURCE = f"""
public class SegmentPolicy implements org.apache.kafka.server.policy.CreateTopicPolicy {{
    public void configure(java.util.Map configs) {{}}

    public void close() {{}}

    public void validate(RequestMetadata asked) {{
        String bytes = (String) asked.configs().get("segment.bytes");
        if (bytes != null && Long.parseLong(bytes) < {LEAST}L) {{
            throw new org.apache.kafka.common.errors.PolicyViolationException(
                "Config property 'segment.bytes' with value '" + bytes + "' exceeded min limit of {LEAST}.");
        }}
    }}
}}
"""


def compiled_policy(directory: Path) -> Path:
    """The directory of the policy's class file, for a broker's class path."""
    source = directory / "SegmentPolicy.java"
    source.write_text(_SOURCE)
    arguments = ["-d", str(directory), "-classpath", jars.classpath(), str(source)]
    command = [java(), "-cp", os.pathsep.join(map(str, _janino())), _COMPILER, *arguments]
    subprocess.run(command, check=True, timeout=PATIENCE)
    return directory


def _janino() -> list[Path]:
    pyspark = find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.submodule_search_locations is not None
    (home,) = pyspark.submodule_search_locations
    return [next((Path(home) / "jars").glob(f"{name}-*.jar")) for name in ("janino", "commons-compiler")]
