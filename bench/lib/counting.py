"""The proof that a copy is complete: an independent client reads and counts its records."""

from appliance.clock import deadline
from appliance.errors import ProcessFailed
from bench.lib.clients import committed_records
from bench.lib.clusters import Pair
from bench.lib.copying import Copying
from bench.lib.filling import Load
from testbed.cluster import Cluster

_DEADLINE = 300.0


async def count(cluster: Cluster, topic: str, partitions: int) -> int:
    """Count the committed records of the topic, from its first offset to its current end."""
    async with deadline(_DEADLINE, f"topic {topic} could not be read to its end", ProcessFailed):
        return sum([len(records) async for records in committed_records(cluster, topic, partitions)])


async def require_complete(pair: Pair, copying: Copying, load: Load) -> None:
    """Require that the copy holds as many records as a consumer sees of the load."""
    copied = await count(pair.destination, copying.topic, load.partitions)
    if copied != load.visible:
        raise copying.process.failure(f"copied {copied} records of {load.visible}")
