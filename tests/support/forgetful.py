"""A cluster that forgets idle transactional ids after a second, as others do after a week."""

import asyncio
from dataclasses import replace

from kio.schema.list_transactions.v0 import ListTransactionsRequest, ListTransactionsResponse

from appliance.kafka.client.cluster import KafkaCluster
from testbed.plan import ClusterPlan
from tests.support.patience import PATIENCE

_SETTINGS = {
    "transactional.id.expiration.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
}


def forgetful(plan: ClusterPlan) -> ClusterPlan:
    """The plan of the same cluster that forgets them."""
    return replace(plan, properties=(*plan.properties, *_SETTINGS.items()))


async def until_forgotten(cluster: KafkaCluster, transactional_id: str) -> None:
    """Wait until a cluster no longer knows a transactional id."""
    broker = await cluster.broker(0)

    async def known() -> bool:
        listed = await broker.call(ListTransactionsRequest(), ListTransactionsResponse)
        return transactional_id in {str(state.transactional_id) for state in listed.transaction_states}

    async with asyncio.timeout(PATIENCE):
        while await known():
            await asyncio.sleep(0.1)
