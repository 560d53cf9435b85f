"""A policy class of our own (KIP-108), for brokers that are configured with it."""

from pathlib import Path

from testbed import jars
from tests.support.java_programs import compiled

SETTING = ("create.topic.policy.class.name", "SegmentPolicy")
LEAST = 50 * 1024 * 1024
"""The smallest segment that the policy permits, in bytes, as in Confluent Cloud."""

# Janino infers no type arguments of an overridden method, so configure takes a raw Map.
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
