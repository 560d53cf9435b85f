"""A total order as a user sets it up: settings that differ in one line, prepare, and ``docker-compose up -d``."""

import asyncio
import time
from dataclasses import dataclass

import pytest
import yaml

from tests.containers.image import limits
from tests.containers.link import Link, Service
from tests.containers.programs.vpc import TOPIC
from tests.containers.sites import GRAPE, ORANGE, Side

T, T_GLOBAL = TOPIC, f"{TOPIC}-global"
RECORDS = 500
_SECONDS = 90.0
SERVICES = ("tunnel", "gateway", "order")


@dataclass(frozen=True, slots=True)
class Ordered(Link):
    """One order of the topics of both clusters; both VMs have all its services."""

    @property
    def name(self) -> str:
        """A part of the names of its folders."""
        return "order"

    def clone(self) -> None:
        """Create both folders, each with its setenv.sh."""
        Link.clone(self)
        for side in (ORANGE, GRAPE):
            text = "".join(f"export {name}='{value}'\n" for name, value in self.settings(side).items())
            (self.folder(side) / "setenv.sh").write_text(text)

    def settings(self, own: Side) -> dict[str, str]:
        """The setenv.sh of one VM."""
        values = {
            "GLOBAL_CLUSTERS": ",".join(f"{side.name}@{side.vm}" for side in (ORANGE, GRAPE)),
            "GLOBAL_CLUSTER": own.name,
            "GLOBAL_HOME": ORANGE.name,
            "GLOBAL_TOPICS_REGEX": T,
            "SHARED_SECRET": self.secret,
            "TUNNEL_PORT": "15099",
            "TUNNEL_RESOLVER": str(own.dns),
            "DNS_UPSTREAM": str(own.dns),
            "IMAGE": Link(self.vpcs, self.source, self.destination).image,  # both VMs have it
        }
        for side in (ORANGE, GRAPE):
            cluster = {
                "BROKER_SERVERS": str(side.bootstrap),
                "BROKER_PATTERN": f"*.{side.name}.example:{side.bootstrap.port}",
                "API_KEY": side.user.key,
                "API_SECRET": side.user.secret.reveal(),
                "CA_FILE": str(self.vpcs.ca_file(side)),
            }
            values |= {f"{side.name.upper()}_{name}": value for name, value in cluster.items()}
        return values


@pytest.mark.release  # the three ends of an order over real TLS: tests/real/gateway; the processes: tests/real/order
@pytest.mark.asyncio(loop_scope="session")
async def test_two_vms_put_the_records_of_both_clusters_in_one_order(link: Link) -> None:
    order = Ordered(link.vpcs, ORANGE, GRAPE)
    order.clone()
    adapt(order)
    for side in (ORANGE, GRAPE):
        assert "15099" in order.prepare_on(side)
    for side in (ORANGE, GRAPE):
        producer = await link.vpcs.produce(side, T, "ordered-first", RECORDS, seconds=0)
        assert await producer.wait(60) == 0
    for side in (ORANGE, GRAPE):
        assert "Building" not in order.up(side)
    try:
        for side in (ORANGE, GRAPE):
            for name in SERVICES:
                await Service(order, side, name).wait_until("healthy")
        producers = [await link.vpcs.produce(side, T, "ordered-then", RECORDS, seconds=2) for side in (ORANGE, GRAPE)]
        for producer in producers:
            assert await producer.wait(60) == 0
        originals = [record for side in (ORANGE, GRAPE) for part in link.vpcs.records(side, T) for record in part]
        assert len(originals) >= 4 * RECORDS
        sides = await shown_everywhere(order, len(originals))
        assert sides[ORANGE.name] == sides[GRAPE.name]
        assert sorted(map(str, originals)) == sorted(str(each) for part in sides[ORANGE.name] for each in part)
        status = Service(order, GRAPE, "order").inside("appliance", "order", "status")
        assert status.returncode == 0, status.stdout + status.stderr
        assert "home is orange" in status.stdout
    finally:
        for side in (ORANGE, GRAPE):
            order.down(side)


def adapt(order: Ordered) -> None:
    """Write docker-compose.override.yml of both VMs: a machine that is itself a container has its own limits."""
    services = {name: limits() for name in ("tunnel", "gateway")}
    for side in (ORANGE, GRAPE) if limits() else ():
        (order.folder(side) / "docker-compose.override.yml").write_text(yaml.safe_dump({"services": services}))


async def shown_everywhere(order: Ordered, records: int) -> dict[str, list[list[object]]]:
    """The T-globals of both clusters, once each has so many records."""
    deadline = time.monotonic() + _SECONDS
    while True:
        shown = {side.name: order.vpcs.records(side, T_GLOBAL) for side in (ORANGE, GRAPE)}
        if all(sum(map(len, parts)) == records for parts in shown.values()):
            return shown
        sizes = {name: sum(map(len, parts)) for name, parts in shown.items()}
        logs = [Service(order, side, "order").log()[-1500:] for side in (ORANGE, GRAPE)]
        assert time.monotonic() < deadline, f"{sizes}: {logs}"
        await asyncio.sleep(1)
