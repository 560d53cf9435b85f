"""The work of one Spark task: some jobs of a verification, with the settings of the task's own host."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

from appliance.errors import PeerError
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.model.naming import Naming
from appliance.replicator.spark.worker import own_settings
from appliance.settings.values import Settings, Start
from appliance.verify.checker import Checker
from appliance.verify.model.report import PartitionResult
from appliance.verify.work import Job, decode_job, encode_result
from appliance.version import VERSION


def verify_in_task(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of the jobs in ``given``, in their order.

    Raises:
        PeerError: the command is of another release.
        SettingsError: this host's settings are unusable.
        BrokerBusy, BrokerRefused, Unreachable, PeerError: a cluster does not answer from here.
    """
    if given["version"] != VERSION:
        raise PeerError(
            f"{socket.gethostname()} has release {VERSION} of the appliance and the command {given['version']}: "
            "install the same on every host of the Spark cluster"
        )
    jobs = [decode_job(fields) for fields in given["jobs"]]
    results = asyncio.run(_verify(own_settings(), jobs, given["wait"]))
    return [encode_result(result) for result in results]


async def _verify(settings: Settings, jobs: Sequence[Job], wait: float) -> list[PartitionResult]:
    results: dict[int, PartitionResult] = {}
    async with source_cluster(settings) as source, destination_cluster(settings) as destination:
        checker = Checker(source, destination, Naming.of(settings), settings.topics.start is Start.LATEST)
        await checker.check(
            jobs, wait, lambda job, result: results.__setitem__(id(job), result), lambda _job, _offset: None
        )
    return [results[id(job)] for job in jobs]
