"""The drill of docs/night/failover.md, word for word, through the tunnel, with running clients and keys with ACLs."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from confluent_kafka.admin import AclOperation, ResourceType

from appliance.link.model.naming import REGISTRY
from appliance.settings.secret import Secret
from testbed.cluster import Cluster
from testbed.jars import MIRROR_MAKER, classpath, java
from testbed.plan import ApiKey
from testbed.process import OwnedProcess
from tests.support.administration import permit
from tests.support.link import GRAPE, ORANGE, Link, link
from tests.support.patience import PATIENCE
from tests.support.rows import read_rows, until_rows
from tests.support.running_clients import Consuming, Producing
from tests.support.settings import write_settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = Path(__file__).parent.parent.parent / "docs" / "night" / "failover.md"
TOPIC, COPY, GROUP, PARTITIONS = "orders", "orders.copy", "billing", 2
READER, WRITER = ApiKey("READER", Secret("reader-secret")), ApiKey("WRITER", Secret("writer-secret"))
LIMITED = {
    "SOURCE_API_KEY": READER.key,
    "SOURCE_API_SECRET": READER.secret.reveal(),
    "DESTINATION_API_KEY": WRITER.key,
    "DESTINATION_API_SECRET": WRITER.secret.reveal(),
    "REPLICA_GROUPS_REGEX": GROUP,
    "GROUPS_SYNC_SECONDS": "0.5",
}
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
JAVA = "-Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.level=OFF"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Link]:
    """Both clusters, with the rights that docs/run/operations.md names, those of a failback among them."""
    plans = replace(ORANGE, limited_keys=(READER,)), replace(GRAPE, limited_keys=(WRITER,))
    async with link(tmp_path_factory.mktemp("drill"), *plans) as made:
        permit_what_is_needed(made)
        yield made


def permit_what_is_needed(on: Link) -> None:
    op, kind = AclOperation, ResourceType
    own = op.CREATE, op.READ, op.WRITE, op.DESCRIBE_CONFIGS
    permit(on.orange, READER, kind.TOPIC, TOPIC, op.READ, op.DESCRIBE_CONFIGS, op.WRITE)
    permit(on.orange, READER, kind.GROUP, GROUP, op.READ)
    permit(on.orange, READER, kind.TOPIC, "replicator-orange.failback", *own)
    permit(on.orange, READER, kind.TRANSACTIONAL_ID, "replicator-orange.failback", op.WRITE, op.DESCRIBE)
    permit(on.grape, WRITER, kind.TOPIC, TOPIC, *own, op.ALTER_CONFIGS, op.ALTER)
    for group in (GROUP, "replicator-orange"):
        permit(on.grape, WRITER, kind.GROUP, group, op.READ)
    for topic in ("replicator-orange.positions", "replicator-orange.offsets", REGISTRY):
        permit(on.grape, WRITER, kind.TOPIC, topic, *own)
    for transactional_id in ("replicator-orange.", REGISTRY):
        permit(on.grape, WRITER, kind.TRANSACTIONAL_ID, transactional_id, op.WRITE, op.DESCRIBE)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the page: commands to enter, and lines that they print, whatever the numbers are."""

    title: str
    commands: list[str]
    printed: list[str]


def steps() -> Iterator[Step]:
    """The steps of the page's drill."""
    drill = PAGE.read_text().partition("\n## Drill\n")[2].partition("\n## ")[0]
    for step in drill.split("\n### ")[1:]:
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", step, re.MULTILINE | re.DOTALL)
        commands = [line for kind, text in blocks if not kind for line in text.splitlines()]
        printed = [line for kind, text in blocks if kind == "text" for line in text.splitlines()]
        yield Step(step.partition("\n")[0].partition(" ")[2], commands, printed)


def fits(shown: str, line: str) -> bool:
    """True if a line of the page is this one, but for its numbers and how many partitions it is of."""
    return re.fullmatch(re.sub(r"\d+", r"\\d+", re.escape(shown)), line) is not None


@dataclass(slots=True)
class Drill:
    """The operator's directory on the destination VM, and the clients."""

    link: Link
    directory: Path
    producing: Producing = field(default_factory=lambda: Producing(PARTITIONS))
    consuming: Consuming = field(default_factory=lambda: Consuming(GROUP, PARTITIONS))
    source_vm: OwnedProcess | None = None
    lost: list[list[bytes]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])

    def prepare(self) -> None:
        """Write what the commands need: settings, the two programs of the page, and Java's configurations."""
        write_settings(self.directory / "setenv.sh", self.link.variables() | LIMITED)
        programs = self.directory / "bin"
        programs.mkdir()
        # The tests' Python has all that bin/appliance would install; tests/start tries that itself.
        script(programs / "appliance", f'exec "{sys.executable}" -m appliance.cli "$@"')
        kafka = f'exec "{java()}" {JAVA} -cp "{classpath(MIRROR_MAKER)}"'
        script(programs / "kafka-consumer-groups.sh", f'{kafka} {GROUPS_TOOL} "$@"')
        for cluster in (self.link.orange, self.link.grape):
            write_java_configuration(cluster, self.directory / f"{cluster.plan.name}.properties")

    async def enter(self, command: str) -> list[str]:
        """Enter a command of the page, which ends well; the lines that it prints."""
        run = await self.ended(command)
        print(f"$ {command}\n{run.stdout}{run.stderr}")
        assert run.returncode == 0, f"{command}: {run.stderr}"
        return run.stdout.splitlines()

    async def ended(self, command: str) -> "subprocess.CompletedProcess[str]":
        """A command as it is on the page, but for the names of the brokers, that has ended."""
        for cluster in (self.link.orange, self.link.grape):
            command = command.replace(f"b0.{cluster.plan.name}:9092", cluster.home_bootstrap)
        path = f"{self.directory / 'bin'}{os.pathsep}{os.environ['PATH']}"
        own = {**os.environ, "PATH": path, "PYTHONPATH": str(PAGE.parent.parent)}
        return await asyncio.to_thread(
            subprocess.run,
            ["bash", "-c", command],
            cwd=self.directory,
            env=own,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    async def begin(self) -> None:
        """Step 1: the clients run, and a copy is there."""
        self.producing.start(self.link.orange, TOPIC)
        self.consuming.start(self.link.orange, TOPIC)
        await self.producing.more(40)
        await self.until_copied()

    async def lose_the_source(self) -> None:
        """Step 2: the consumers end first, so that what they have read is known; then the VM, and then the brokers."""
        await self.consuming.stop()
        await self.until_followed()
        await self.producing.more(40)
        await self.until_copied()
        await self.end_source_vm()
        await self.producing.more(20)
        await self.link.orange.kill(0)
        await self.producing.stop()

    async def move_the_clients(self) -> None:
        """Step 3."""
        self.consuming.start(self.link.grape, COPY)
        self.producing.start(self.link.grape, COPY)
        await self.producing.more(60)

    async def bring_the_source_back(self) -> None:
        """Step 4: the clients at the copies run on."""
        await self.link.orange.restart(0)
        await self.start_source_vm()
        await self.until_status(lambda status: status["source"]["unknown"] is None)
        for partition, values in enumerate(await self.values(self.link.orange, TOPIC)):
            copied = set((await self.values(self.link.grape, COPY))[partition])
            self.lost[partition] += [value for value in values if value not in {*copied, *self.lost[partition]}]

    async def stop_the_clients(self) -> None:
        """Step 5: the producers, and then the consumers, which have read all."""
        await self.producing.stop()
        await self.consuming.has_read(sum(map(len, self.kept())))
        await self.consuming.stop()

    async def let_the_clients_return(self) -> None:
        """Step 7."""
        self.consuming.start(self.link.orange, TOPIC)
        self.producing.start(self.link.orange, TOPIC)
        await self.producing.more(40)

    async def finish(self) -> None:
        """End the clients; the copies hold all that there is, but for what was lost, and the clients have read that."""
        await self.stop_the_clients()
        await self.until_copied()
        await self.until_followed()
        for partition in range(PARTITIONS):
            lost = self.lost[partition]
            written = [row for row in read_rows(self.link.orange, TOPIC, partition) if row[2] not in lost]
            assert read_rows(self.link.grape, COPY, partition) == written
            assert self.consuming.read[partition] == [row[2] for row in written] == self.kept()[partition]

    async def until_copied(self) -> None:
        """Wait until the copies hold what was acknowledged up to now, and was not lost."""
        for partition, values in enumerate(self.kept()):
            await until_rows(self.link.grape, COPY, len(values), partition)

    def kept(self) -> list[list[bytes]]:
        """The values by partition that were acknowledged and not lost."""
        pairs = zip(self.producing.acknowledged, map(set, self.lost), strict=True)
        return [[value for value in values if value not in lost] for values, lost in pairs]

    async def values(self, cluster: Cluster, topic: str) -> list[list[bytes]]:
        read = [await asyncio.to_thread(read_rows, cluster, topic, number) for number in range(PARTITIONS)]
        return [[row[2] or b"" for row in rows] for rows in read]

    async def start_source_vm(self) -> None:
        self.source_vm = await self.link.start("source", **LIMITED)
        await self.source_vm.wait_for_line("ready", PATIENCE)

    async def end_source_vm(self) -> None:
        if self.source_vm is not None:
            await self.source_vm.kill()

    async def until_followed(self) -> None:
        """Wait until the group is where it is at the source."""
        synced = [(GROUP, "synced")]
        await self.until_status(lambda now: [(each["group"], each["state"]) for each in now["groups"]] == synced)

    async def until_status(self, reached: Callable[[Any], bool]) -> None:
        """Wait until the status shows what is waited for."""
        async with asyncio.timeout(PATIENCE):
            while not reached(json.loads((await self.ended("bin/appliance status --json")).stdout)):
                pass


DOING = {
    "Look": Drill.begin,
    "The source is lost": Drill.lose_the_source,
    "The clients move": Drill.move_the_clients,
    "The source is back": Drill.bring_the_source_back,
    "Failing back": Drill.stop_the_clients,
    "The groups return": None,
    "The clients return": Drill.let_the_clients_return,
}
"""Whatever is to be done in a step of the page before its commands are entered."""


@pytest.mark.release  # its commands are tested one by one in tests/real/commands
async def test_the_drill_is_carried_out_word_for_word(shared: Link, tmp_path: Path) -> None:
    shared.make_topic(shared.orange, TOPIC, PARTITIONS)
    drill = Drill(shared, tmp_path)
    drill.prepare()
    async with contextlib.AsyncExitStack() as undo:
        for client in (drill.producing, drill.consuming):
            undo.push_async_callback(client.stop)
        undo.push_async_callback(drill.end_source_vm)
        await drill.start_source_vm()
        destination_vm = await undo.enter_async_context(shared.running("destination", **LIMITED))
        await destination_vm.wait_for_line("ready", PATIENCE)
        replicator = await undo.enter_async_context(shared.running("replicate", **LIMITED))
        page = list(steps())
        assert [step.title for step in page] == list(DOING)
        for step in page:
            print(f"### {step.title}")
            if doing := DOING[step.title]:
                await doing(drill)
            lines = [line for command in step.commands for line in await drill.enter(command)]
            for shown in step.printed:
                assert any(fits(shown, line) for line in lines), f"{step.title} does not print: {shown}"
            if step.title == "The source is back":
                behind = sum(map(len, drill.lost))
                assert f"records behind in {PARTITIONS} partitions: {behind:,}" in lines
        await drill.finish()
        replicator.require_running()


def script(path: Path, line: str) -> None:
    """Write a program of one line."""
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def write_java_configuration(cluster: Cluster, path: Path) -> None:
    """The file that Kafka's own programs take as --command-config."""
    given = cluster.client_configuration()
    login = f'username="{given["sasl.username"]}" password="{given["sasl.password"]}"'
    entries = {
        "security.protocol": given["security.protocol"],
        "sasl.mechanism": given["sasl.mechanism"],
        "sasl.jaas.config": f"org.apache.kafka.common.security.plain.PlainLoginModule required {login};",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": given["ssl.ca.location"],
    }
    path.write_text("".join(f"{name}={value}\n" for name, value in entries.items()))
