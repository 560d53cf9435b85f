"""``python -m tests.networks.programs.brokers PLAN DIRECTORY``: a cluster with its users and topics, until SIGTERM."""

import asyncio
import signal
import sys
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from testbed.cluster import Cluster
from tests.networks.clusters import PARTITIONS, PLANS, SCRAM_USER, TOPICS

_SECONDS = 30.0


def furnish(cluster: Cluster) -> None:
    """Create the SCRAM user, and the topics."""
    admin = AdminClient(cluster.client_configuration())
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    user = UserScramCredentialUpsertion(SCRAM_USER.key, credential, SCRAM_USER.secret.reveal().encode())
    made = [*admin.alter_user_scram_credentials([user]).values()]
    if topics := TOPICS[cluster.plan.name]:
        made += admin.create_topics([NewTopic(topic, PARTITIONS) for topic in topics]).values()
    for one in made:
        one.result(_SECONDS)


async def main(plan: str, directory: Path) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with Cluster(PLANS[plan], directory) as cluster:
        furnish(cluster)
        print("ready", flush=True)
        await stopping.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
