"""The records that the link's failbacks have brought from its copies back to the source: they have passed no SQL."""

from collections.abc import Iterable

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.link.client.checkpoint_log import peek_checkpoints
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import Replica


async def brought_back(
    source: KafkaCluster, naming: Naming, replicas: Iterable[Replica]
) -> dict[Partition, frozenset[int]]:
    """The producer ids with which the lanes of the link's failbacks have brought records of these copies back.

    What came from a copy that was made anew since has passed the SQL on its way to the present one.

    Raises:
        BrokerBusy, BrokerRefused, Unreachable, PeerError: as everywhere.
    """
    name = naming.failback.positions_topic
    topic = (await source.metadata([name])).topics.get(name)
    lanes = len(topic.leaders) if topic else 0
    checkpoints = await retry_while_busy(lambda: peek_checkpoints(source, name, lanes))
    held = {key: each for checkpoint in checkpoints for key, each in checkpoint.positions.items()}
    ends = [each.copy_end for each in held.values()]
    marks = [checkpoint.mark for checkpoint in checkpoints]
    ids = frozenset(each.producer_id for each in (*ends, *marks) if each and each.producer_id >= 0)
    present = [each for each in replicas if each.copy in held]
    return {each.source: ids for each in present if not is_another(held[each.copy].source_id, each.destination_id)}
