"""The audit's writer in the replicator's driver, on a connection of its own."""

from appliance.audit.model.progress import AuditProgress
from appliance.audit.store import store_of
from appliance.audit.writer import AuditWriter
from appliance.link.client.clusters import destination_cluster
from appliance.link.model.naming import Naming
from appliance.replicator.spark.session import Spark
from appliance.settings.values import Settings


async def write_audit(settings: Settings, spark: Spark, progress: AuditProgress) -> None:
    """Write the audit table until it is cancelled."""
    store = store_of(settings.audit.path, spark.hadoop)
    async with destination_cluster(settings) as destination:
        await AuditWriter(destination, Naming.of(settings), store, settings.audit, progress).run()
