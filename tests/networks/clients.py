"""Independent Kafka clients: kcat, Java's console tools, and confluent-kafka in a Python process.

Each verifies the brokers' certificates and host names. Records are lines, ``key:value``.
"""

import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from appliance.settings.target import Target
from testbed import jars
from testbed.jars import java
from testbed.plan import ApiKey
from tests.networks.clusters import GRAPE, ORANGE, USERS, bootstrap
from tests.networks.vpcs import Vpcs
from tests.support.namespace import Namespace

_PATIENCE_MILLISECONDS = "20000"
_JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF")
_TOOLS = "org.apache.kafka.tools"


@dataclass(frozen=True, slots=True)
class Access:
    """The client's machine, its cluster and its login."""

    machine: Namespace
    server: Target
    mechanism: str
    ca_file: Path
    environment: Mapping[str, str]

    @property
    def user(self) -> ApiKey:
        """The user for the login."""
        return USERS[self.mechanism]

    def say(self, *command: str, given: str = "") -> str:
        """Run a command that must succeed; return its output."""
        return self.machine.say(*command, given=given, environment=self.environment)

    def file(self, entries: Mapping[str, str]) -> str:
        """Write a new properties file; return its path."""
        path = self.ca_file.parent.parent / f"client-{secrets.token_hex(4)}.properties"
        path.touch(0o600)
        path.write_text("".join(f"{name}={value}\n" for name, value in entries.items()))
        return str(path)

    def librdkafka(self) -> dict[str, str]:
        """The configuration of a librdkafka client."""
        return {
            "bootstrap.servers": str(self.server),
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.ca_file),
            "ssl.endpoint.identification.algorithm": "https",
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.user.key,
            "sasl.password": self.user.secret.reveal(),
        }

    def java(self) -> dict[str, str]:
        """The configuration of a Java client, which checks host names by default."""
        module = "plain.PlainLoginModule" if self.mechanism == "PLAIN" else "scram.ScramLoginModule"
        login = f'username="{self.user.key}" password="{self.user.secret.reveal()}"'
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca_file),
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required {login};",
        }


class Client(Protocol):
    """The interface of a client."""

    def topics(self) -> set[str]:
        """The topics of the cluster, without Kafka's own."""
        ...

    def produce(self, topic: str, records: Sequence[str]) -> None:
        """Write records, and wait until the cluster has them."""
        ...

    def consume(self, topic: str, count: int) -> list[str]:
        """The first ``count`` records of all partitions."""
        ...


@dataclass(frozen=True, slots=True)
class Kcat:
    """Debian's kcat."""

    access: Access

    def topics(self) -> set[str]:
        listed = json.loads(self.run("-L", "-J"))
        return _users({topic["topic"] for topic in listed["topics"]})

    def produce(self, topic: str, records: Sequence[str]) -> None:
        self.run("-P", "-t", topic, "-K", ":", given=_lines(records))

    def consume(self, topic: str, count: int) -> list[str]:
        return self.run("-C", "-t", topic, "-o", "beginning", "-c", str(count), "-f", "%k:%s\n").splitlines()

    def everything(self, topic: str) -> list[str]:
        """Partition, time, key, value and headers of all current records, in the order of each partition."""
        said = self.run("-C", "-t", topic, "-o", "beginning", "-e", "-f", "%p %T %k %s %h\n")
        return sorted(said.splitlines(), key=lambda line: int(line.split()[0]))

    def run(self, *options: str, given: str = "") -> str:
        """Run kcat; return its output."""
        return self.access.say("kcat", "-q", "-F", self.access.file(self.access.librdkafka()), *options, given=given)


@dataclass(frozen=True, slots=True)
class Console:
    """Kafka's own command line tools."""

    access: Access

    def topics(self) -> set[str]:
        return _users(set(self._run("TopicCommand", "--list").split()))

    def produce(self, topic: str, records: Sequence[str]) -> None:
        separated = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
        self._run("ConsoleProducer", "--topic", topic, *separated, given=_lines(records))

    def consume(self, topic: str, count: int) -> list[str]:
        wanted = ("--topic", topic, "--from-beginning", "--max-messages", str(count))
        limits = ("--timeout-ms", _PATIENCE_MILLISECONDS)
        keys = ("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:")
        return self._run("consumer.ConsoleConsumer", *wanted, *limits, *keys).splitlines()

    def _run(self, tool: str, *options: str, given: str = "") -> str:
        where = (
            "--bootstrap-server",
            str(self.access.server),
            "--command-config",
            self.access.file(self.access.java()),
        )
        classpath = jars.classpath(jars.MIRROR_MAKER)
        return self.access.say(java(), *_JAVA, "-cp", classpath, f"{_TOOLS}.{tool}", *where, *options, given=given)


@dataclass(frozen=True, slots=True)
class Confluent:
    """confluent-kafka."""

    access: Access

    def topics(self) -> set[str]:
        return _users(set(self._run("topics").split()))

    def produce(self, topic: str, records: Sequence[str]) -> None:
        self._run("produce", topic, given=_lines(records))

    def consume(self, topic: str, count: int) -> list[str]:
        return self._run("consume", topic, str(count)).splitlines()

    def _run(self, *arguments: str, given: str = "") -> str:
        configuration = self.access.file(self.access.librdkafka())
        program = "tests.networks.programs.confluent"
        return self.access.say(sys.executable, "-m", program, configuration, *arguments, given=given)


CLIENTS: dict[str, type[Kcat | Console | Confluent]] = {"kcat": Kcat, "console": Console, "confluent": Confluent}


def in_source_vpc(vpcs: Vpcs, mechanism: str = "PLAIN") -> Access:
    """Access in the source VPC, without a tunnel."""
    return Access(vpcs.machines.source_vpc, bootstrap(ORANGE), mechanism, vpcs.ca_file("orange"), vpcs.environment)


def through_tunnel(vpcs: Vpcs, mechanism: str = "PLAIN", server: Target | None = None) -> Access:
    """The access from the destination VM to the source brokers."""
    server = server or bootstrap(ORANGE)
    return Access(vpcs.machines.destination_vm, server, mechanism, vpcs.ca_file("orange"), vpcs.environment)


def in_destination_vpc(vpcs: Vpcs, mechanism: str = "PLAIN") -> Access:
    """Access in the destination VPC."""
    return Access(vpcs.machines.destination_vpc, bootstrap(GRAPE), mechanism, vpcs.ca_file("grape"), vpcs.environment)


def _users(topics: set[str]) -> set[str]:
    return {topic for topic in topics if not topic.startswith("__")}


def _lines(records: Sequence[str]) -> str:
    return "".join(f"{record}\n" for record in records)
