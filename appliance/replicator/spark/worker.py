"""A Spark task: it gets its assignment from the driver over a control connection, and copies until the stop."""

import asyncio
import os
import socket
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from appliance.errors import ApplianceError, PeerError, SettingsError
from appliance.kafka.client.clock import now_ms
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.model.checkpoint import Owner
from appliance.link.model.naming import Naming
from appliance.replicator.model.problem_log import unexpected
from appliance.replicator.spark.assignment import Hello, Notice
from appliance.replicator.spark.control_client import ControlClient, DriverEndpoint, control_client, transform_socket
from appliance.replicator.spark.spark_jvm import ENV_FILE_VARIABLE
from appliance.replicator.spark.task_runner import TaskRunner, Transforming
from appliance.replicator.spark.transform_listener import serving_hosts
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.values import OnTransformError, Settings
from appliance.version import VERSION


def work(version: str, given: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> None:
    """Run a Spark task. The arguments are the same in every release; in this one ``given`` holds the fields of the
    ``endpoint`` and of the ``hello``.

    Raises:
        PeerError: the driver is of another release.
        SettingsError: this host's settings are unusable.
        Unreachable: the driver is not reachable from here, or no longer.
        Superseded: another try of the task has its lanes.
    """
    require_release(version)
    settings = own_settings(environment)
    asyncio.run(_copy(settings, DriverEndpoint(**given["endpoint"]), Hello(**given["hello"])))


def require_release(version: str) -> None:
    """Check that the driver has the release of this host.

    Raises:
        PeerError: it has another one.
    """
    if version != VERSION:
        raise PeerError(
            f"{socket.gethostname()} has release {VERSION} of the appliance and the replicator {version}: "
            "install the same on every host of the Spark cluster"
        )


async def _copy(settings: Settings, endpoint: DriverEndpoint, hello: Hello) -> None:
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
            _transforming(endpoint, hello.task, driver),
        )
        try:
            await runner.run(driver.assignments())
        except Exception as error:  # Spark reports to the driver only after the last failure
            known = error if isinstance(error, ApplianceError) else unexpected(error)
            driver.report(Notice(f"task {hello.task}", str(known), type(known).__name__))
            raise


def _transforming(endpoint: DriverEndpoint, task: int, driver: ControlClient) -> Transforming | None:
    """The SQL of the link, and the place where a task serves its jobs; None if records are copied as they are."""
    if not endpoint.on_transform_error:
        return None
    stops = endpoint.on_transform_error == OnTransformError.STOP
    if isinstance(endpoint.at, str):
        socket = transform_socket(Path(endpoint.at), task)
        return Transforming(stops, lambda service: service.serving(socket))
    return Transforming(stops, lambda service: serving_hosts(service, task, driver, endpoint.token))


def own_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this host.

    Raises:
        SettingsError: there are none, or they are faulty.
    """
    host = socket.gethostname()
    if ENV_FILE_VARIABLE not in environment:
        raise SettingsError([f"{ENV_FILE_VARIABLE}: missing on {host}: start its worker by `appliance spark worker`"])
    try:
        return read_settings(Path(environment[ENV_FILE_VARIABLE]), Role.REPLICATOR, environment)
    except SettingsError as error:
        raise SettingsError([f"on {host}: {fault}" for fault in error.faults]) from error
