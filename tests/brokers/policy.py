"""A policy class of our own for a broker (KIP-108), for one that is told to have it."""

from pathlib import Path

from testbed import jars
from tests.support.java_programs import compiled

SETTING = ("create.topic.policy.class.name", "SegmentPolicy")
LEAST = 50 * 1024 * 1024
"""In bytes, the smallest segment that the policy lets a topic have, as Confluent Cloud's does."""

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
    return compiled(source, jars.classpath(), directory)
