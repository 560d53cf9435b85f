"""The two clusters between which is copied: one broker each, in plain text, with the same heap."""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from appliance.demo.cluster import Cluster
from appliance.demo.plan import ClusterPlan
from appliance.dns.stub import system_addresses
from appliance.kafka.cluster import KafkaCluster
from appliance.settings.secret import Secret
from appliance.settings.values import ClusterSettings, SaslMechanism, Side

_HEAP_MEGABYTES = 1024


@dataclass(frozen=True, slots=True)
class Pair:
    """Both clusters, running, and a directory for the files of whoever copies from one to the other."""

    source: Cluster
    destination: Cluster
    directory: Path


@contextlib.asynccontextmanager
async def plain_pair() -> AsyncIterator[Pair]:
    """Starts both; they and all their files are gone afterwards.

    Raises:
        ProcessFailed, ToolMissing: as ``Cluster.start``.
    """
    source = ClusterPlan.plain("source", address="127.0.21.1", heap_megabytes=_HEAP_MEGABYTES)
    destination = ClusterPlan.plain("destination", address="127.0.22.1", heap_megabytes=_HEAP_MEGABYTES)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        async with Cluster(source, directory) as first, Cluster(destination, directory) as second:
            yield Pair(first, second, directory)


def kafka_cluster(cluster: Cluster, side: Side) -> KafkaCluster:
    """Our own client of a running cluster of the pair."""
    nobody = SaslMechanism.PLAIN, "", Secret("")
    plan, targets = cluster.plan, cluster.home_targets
    settings = ClusterSettings(side, plan.name, targets, plan.security, *nobody, ca_file=None)
    return KafkaCluster(settings, system_addresses, "bench")
