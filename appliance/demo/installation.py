"""Kafka as it is installed in the user's cache: its jars, and what one rehearsal of a broker left beside them.

- ``classes.jsa``: the classes a broker loads, parsed and verified (JEP 350), for half the start time and less memory.
- ``bootstrap.checkpoint``: the feature levels of a new cluster, as Kafka's own storage tool writes them.
"""

from dataclasses import dataclass
from pathlib import Path

from appliance.demo.plan import ClusterPlan


@dataclass(frozen=True, slots=True)
class Installation:
    """How Kafka's programs are run. ``class_options`` are the JVM's about the archive of classes."""

    java: str
    classpath: str
    checkpoint: Path
    class_options: tuple[str, ...]

    def command(self, plan: ClusterPlan, directory: Path, program: str, *arguments: str) -> list[str]:
        """Runs the Java class ``program``; what the JVM keeps as files goes to ``directory``, which must exist.

        Log4j without a configuration prints to the standard output; ``-Xlog:disable`` is about the JVM's own remarks.
        """
        settled = (f"-Xms{plan.heap_megabytes}m", "-XX:+AlwaysPreTouch")
        return [
            self.java,
            f"-Xmx{plan.heap_megabytes}m",
            "-XX:+UseSerialGC",
            *(settled if plan.optimised else ("-XX:TieredStopAtLevel=1",)),
            *self.class_options,
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:-UsePerfData",
            "-Xlog:disable",
            f"-Djava.io.tmpdir={directory}",
            "-Dlog4j2.level=WARN",
            "-cp",
            self.classpath,
            program,
            *arguments,
        ]
