"""A Spark task: it gets its assignment from the driver over a control connection, and copies until the stop."""

import asyncio
import os
import socket
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from appliance.clock import now_ms
from appliance.engine.control.assignment import Hello, Notice
from appliance.engine.control.client import ControlClient, DriverEndpoint, control_client
from appliance.engine.problem_log import log_defect
from appliance.engine.task.runner import TaskRunner, Transforming
from appliance.errors import ApplianceError
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.model.checkpoint import Owner
from appliance.link.model.naming import Naming
from appliance.settings.values import Settings
from appliance.spark.host import own_settings, require_release


def work(
    version: str,
    endpoint: Mapping[str, Any],
    transforming: Callable[[DriverEndpoint, int, ControlClient], Transforming | None],
    task: int,
    attempt: int,
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Run a Spark task; ``endpoint`` has the fields of the driver's.

    Raises:
        PeerError: the driver is of another release.
        SettingsError: this host's settings are unusable.
        Unreachable: the driver is not reachable from here, or no longer.
        Superseded: another try of the task has its lanes.
    """
    require_release(version)
    settings = own_settings(environment)
    asyncio.run(_copy(settings, DriverEndpoint(**endpoint), Hello(task, attempt), transforming))


async def _copy(
    settings: Settings,
    endpoint: DriverEndpoint,
    hello: Hello,
    transforming: Callable[[DriverEndpoint, int, ControlClient], Transforming | None],
) -> None:
    now = now_ms()
    owner = Owner(endpoint.run, uuid.uuid4().hex, socket.gethostname(), now, endpoint.generation)
    async with (
        control_client(endpoint, hello) as driver,
        source_cluster(settings) as source,
        destination_cluster(settings) as destination,
    ):
        runner = TaskRunner(
            source,
            destination,
            Naming.of(settings),
            settings.engine,
            owner,
            driver.report,
            transforming(endpoint, hello.task, driver),
        )
        try:
            await runner.run(driver.assignments())
        except Exception as error:  # Spark reports to the driver only after the last failure
            reported = error if isinstance(error, ApplianceError) else log_defect(error)
            driver.report(Notice(f"task {hello.task}", str(reported), type(reported).__name__))
            raise
