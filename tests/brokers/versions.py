"""The tested versions of Kafka, and a cluster of each: one broker, started when a test first needs it."""

import asyncio
import contextlib
import threading
import time
from dataclasses import replace
from pathlib import Path

from confluent_kafka.admin import NewTopic

from appliance.settings.secret import Secret
from appliance.settings.values import SecurityProtocol
from demo.input import RECORDS_MIN, Input, make_topics
from demo.producing import produce
from testbed.cluster import Cluster
from testbed.jars import KAFKA_VERSION
from testbed.plan import ApiKey, ClusterPlan
from tests.support.administration import make_topic

NEWEST = "4.4.0"
OLD = ("2.8.2", "3.3.2", "3.6.2", "3.9.1", KAFKA_VERSION)
"""The older ones; the last is that of all other suites."""

PAIRS = (*((old, NEWEST) for old in OLD), *((NEWEST, old) for old in OLD), ("2.8.2", "3.6.2"))
"""Source and destination."""

EACH_SUBMISSION = ((OLD[0], NEWEST), (NEWEST, OLD[0]))
"""The pairs that every submission is tested with: the oldest version on either side. The others are for a release."""

LIVE = "orders.live"
LIVE_PARTITIONS = 2
"""The topic that producers write to while it is copied."""

KEY = ApiKey("BROKERS", Secret("brokers-api-secret"))

_RECORDS = 5 * RECORDS_MIN


def plan(version: str, address: str) -> ClusterPlan:
    """One broker of this version, with SASL and TLS; before 3.0 without TLS, for want of unencrypted PEM keys."""
    name = f"kafka-{version.replace('.', '-')}"
    secure = ClusterPlan.secure(name, size=1, first_address=address, api_keys=(KEY,))
    protocol = SecurityProtocol.SASL_PLAINTEXT if version.startswith("2.") else secure.security
    return replace(secure, version=version, security=protocol)


class Versions:
    """The clusters by version; a context manager that stops them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._clusters: dict[str, Cluster] = {}
        self._filled: set[str] = set()
        self._undo = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "Versions":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._undo.aclose()

    async def cluster(self, version: str) -> Cluster:
        """The cluster of this version."""
        if version not in self._clusters:
            address = f"127.0.6.{len(self._clusters) + 1}"
            cluster = Cluster(plan(version, address), self._directory)
            self._clusters[version] = await self._undo.enter_async_context(cluster)
        return self._clusters[version]

    async def source(self, version: str) -> Cluster:
        """The cluster of this version, filled: all codecs, tombstones, headers, committed and aborted transactions."""
        cluster = await self.cluster(version)
        if version not in self._filled:
            await asyncio.to_thread(_fill, cluster)
            self._filled.add(version)
        return cluster


def _fill(cluster: Cluster) -> None:
    client = cluster.client_configuration()
    make_topics(client)
    make_topic(cluster, NewTopic(LIVE, LIVE_PARTITIONS, 1))
    records = Input(_RECORDS, now=int(time.time() * 1000))
    for second_half in (False, True):
        produce(client, records, second_half, lambda _: None, threading.Event())
