"""The records that the link's failbacks have brought from its copies back to the source: they have passed no SQL."""

from collections.abc import Collection

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import Replica
from appliance.verify.partition_sql import BroughtBack


async def brought_back(
    source: KafkaCluster, naming: Naming, replicas: Collection[Replica]
) -> dict[Partition, BroughtBack]:
    """What the link's failbacks have brought back from these copies, by the maps of the link in reverse.

    What came from a copy that was made anew since has passed the SQL on its way to the present one.
    """
    maps = OffsetMaps(source, naming.failback)
    await maps.read({each.copy for each in replicas})
    ids, found = sorted(maps.producer_ids), {}
    for each in replicas:
        if (held := maps.position(each.copy)) and not is_another(held.source_id, each.destination_id):
            spans = [(known.stretch.copy_from, known.stretch.copy_to) for known in maps.segments(each.copy)]
            found[each.source] = BroughtBack(ids, spans)
    return found
