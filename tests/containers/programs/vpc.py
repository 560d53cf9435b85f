"""``python -m tests.containers.programs.vpc SIDE DIRECTORY``: a VPC's cluster, topic and DNS server, until SIGTERM.

A neighbour has no DNS server of its own.
"""

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from dnslib import QTYPE, DNSRecord

from testbed.cluster import Cluster
from tests.containers.sites import NEIGHBOURS, PLAIN_SOURCE, SIDES, Side, names_in_vpc
from tests.support.dns import Script, answer, scripted_server

TOPIC = "orders"
PARTITIONS = 4
TOPICS = {**dict.fromkeys(SIDES, TOPIC), PLAIN_SOURCE.name: "source-topic"}
"""The topic of each cluster that has one."""

_SECONDS = 30.0


def replies(side: Side) -> Script:
    """The DNS server's answers: its brokers' addresses; other names have none."""

    async def reply(asked: bytes) -> list[bytes]:
        question = DNSRecord.parse(asked).q
        address = names_in_vpc(side).get(str(question.qname).rstrip(".").lower())
        return [answer(asked, *([address] if address and question.qtype == QTYPE.A else []))]

    return reply


async def main(side: Side, directory: Path) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(Cluster(side.plan, directory))
        if side.name in SIDES:
            await stack.enter_async_context(scripted_server(replies(side), replies(side), side.dns))
        if topic := TOPICS.get(side.name):
            admin = AdminClient(cluster.client_configuration())
            admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(_SECONDS)
        print("ready", flush=True)
        await stopping.wait()


if __name__ == "__main__":
    asyncio.run(main({**SIDES, **NEIGHBOURS}[sys.argv[1]], Path(sys.argv[2])))
