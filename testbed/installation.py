"""Kafka as it is installed in the user's cache: its jars, and the files that one rehearsal of a broker left beside
them.

- ``classes.jsa``: the classes that a broker loads, parsed and verified (JEP 350); they halve its start, and save
  memory.
- ``bootstrap.checkpoint``: the feature levels of a new cluster, as Kafka's own storage tool writes them; a version with
  ZooKeeper has none.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from testbed.plan import ClusterPlan


@dataclass(frozen=True, slots=True)
class Installation:
    """The command line of Kafka's programs. ``class_options`` are the JVM's options for the class archive."""

    java: str
    classpath: str
    checkpoint: Path | None
    class_options: tuple[str, ...]

    def command(self, plan: ClusterPlan, directory: Path, program: str, *arguments: str) -> list[str]:
        """Run the Java class ``program``; the JVM writes its files to ``directory``, which must exist.

        Log4j without a configuration prints to the standard output; ``-Xlog:disable`` silences the JVM's own messages.
        ZooKeeper would look for classes of Log4j 1.2 that the bridge does not have.
        """
        settled = (f"-Xms{plan.heap_megabytes}m", "-XX:+AlwaysPreTouch")
        return [
            self.java,
            f"-Xmx{plan.heap_megabytes}m",
            "-XX:+UseSerialGC",
            *(settled if plan.optimised else ("-XX:TieredStopAtLevel=1",)),
            *self.class_options,
            *plan.java_options,
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:-UsePerfData",
            "-Xlog:disable",
            f"-Djava.io.tmpdir={directory}",
            "-Dlog4j2.level=WARN",
            "-Dzookeeper.jmx.log4j.disable=true",
            "-cp",
            os.pathsep.join([self.classpath, *map(str, plan.classes)]),
            program,
            *arguments,
        ]
