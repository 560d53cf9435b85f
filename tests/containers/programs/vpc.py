"""``python -m tests.containers.programs.vpc SIDE DIRECTORY``: a VPC's cluster, topic and DNS server, until SIGTERM."""

import asyncio
import signal
import sys
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from dnslib import QTYPE, DNSRecord

from testbed.cluster import Cluster
from tests.containers.sites import SIDES, Side
from tests.support.dns import Script, answer, scripted_server

TOPIC = "orders"
PARTITIONS = 4
_SECONDS = 30.0


def replies(side: Side) -> Script:
    """The DNS server's answers: its brokers' addresses; other names have none."""

    async def reply(asked: bytes) -> list[bytes]:
        question = DNSRecord.parse(asked).q
        address = side.names.get(str(question.qname).rstrip(".").lower())
        return [answer(asked, *([address] if address and question.qtype == QTYPE.A else []))]

    return reply


async def main(side: Side, directory: Path) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with Cluster(side.plan, directory) as cluster, scripted_server(replies(side), replies(side), side.dns):
        admin = AdminClient(cluster.client_configuration())
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(_SECONDS)
        print("ready", flush=True)
        await stopping.wait()


if __name__ == "__main__":
    asyncio.run(main(SIDES[sys.argv[1]], Path(sys.argv[2])))
