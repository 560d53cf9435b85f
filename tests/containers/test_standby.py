"""The drill of docs/run/standby.md, word for word, with two destination VMs in containers while records arrive.

The second VM has a folder, a network, a gateway and a replicator of its own, on the engine of the first one: its pages
are at other addresses, and its host name is another one.
"""

import asyncio
import json
import re
import socket
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from deploy.prepare.vm import host_name
from tests.containers.clusters import SECONDS
from tests.containers.image import limits
from tests.containers.link import Link, Service, clone_into
from tests.containers.page import run
from tests.containers.programs.vpc import TOPIC
from tests.containers.sites import GRAPE, ORANGE, Side

SECTION = (Path(__file__).parents[2] / "docs" / "run" / "standby.md").read_text().split("## The drill\n")[1]
BEGIN, OTHER, BACK = (
    block.splitlines() for block in re.findall(r"^```\n(.*?)^```", SECTION.split("\n## ")[0], re.M | re.S)
)
HOST, RECORDS = "grape-vm-2", 2000
PAGES = {
    name: f"127.77.0.2:{port}"
    for port, name in enumerate(("CONSOLE_LISTEN", "TUNNEL_STATUS_LISTEN", "CONTROL_CENTER_LISTEN"), 8080)
}


@dataclass(frozen=True, slots=True)
class SecondVm(Link):
    """The same link on another destination VM."""

    def folder(self, side: Side) -> Path:
        return self.vpcs.directory / f"{side.name}-vm-2" / "standby"

    def make(self) -> None:
        """Create, prepare and start it, without its control center."""
        clone_into(self.folder(GRAPE), Link.variables(self) | PAGES)
        networks = {"default": {"name": HOST, "driver_opts": {"com.docker.network.bridge.name": HOST}}}
        override = {"services": {"gateway": {"hostname": HOST, **limits()}}, "networks": networks}
        (self.folder(GRAPE) / "docker-compose.override.yml").write_text(yaml.safe_dump(override))
        self.prepare_on(GRAPE)
        self.vpcs.engines[GRAPE.name].compose(self.folder(GRAPE), "up", "-d", "replicator")


async def until_shown(vm: Link, states: dict[str, str]) -> str:
    """Wait until ``status`` on a VM has the replicators' hosts in these states; return the reason of the hand-over."""
    deadline = time.monotonic() + SECONDS
    while True:
        asked = Service(vm, GRAPE, "replicator").inside("appliance", "status", "--json")
        shown = json.loads(asked.stdout)["replicators"] if asked.stdout else {"members": []}
        if {each["host"]: each["state"] for each in shown["members"]} == states:
            return (shown["last_hand_over"] or {"reason": ""})["reason"]
        assert time.monotonic() < deadline, (shown, asked.stderr)
        await asyncio.sleep(1)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_drill_of_a_standby_is_carried_out_word_for_word(link: Link) -> None:
    second = SecondVm(link.vpcs, ORANGE, GRAPE, link.secret)
    host = Service(link, GRAPE, "replicator").inside("hostname").stdout.strip()
    assert host == host_name(socket.gethostname())
    second.make()
    try:
        await until_shown(link, {host: "active", HOST: "standing by"})
        producer = await link.vpcs.produce(ORANGE, TOPIC, "standby", RECORDS, seconds=10)
        assert f"standing by: {HOST} since" in said(link, BEGIN)
        assert f"last hand-over from {host}: {host} was stopped" in said(second, OTHER)
        assert await producer.wait(60) == 0
        await link.wait_until_copied()
        said(link, BACK)
        await until_shown(link, {HOST: "active", host: "standing by"})
    finally:
        second.down(GRAPE)
    assert await until_shown(link, {host: "active"}) == f"{HOST} was stopped"
    await link.wait_until_copied()


def said(vm: Link, commands: list[str]) -> str:
    """The commands of a block of the page, entered on a VM; what they print, in one line.

    ``status`` may tell of a topic that another test has stopped.
    """
    return " ".join(" ".join(run(vm, GRAPE, command, 1) for command in commands).split())
