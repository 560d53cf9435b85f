"""The host of a Spark task: its release of the appliance, and its settings."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from appliance.errors import PeerError, SettingsError
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings
from appliance.spark.spark_jvm import ENV_FILE_VARIABLE
from appliance.version import VERSION


def require_release(version: str) -> None:
    """Check that the driver has the release of this host; PeerError if it has another one."""
    if version != VERSION:
        raise PeerError(
            f"{socket.gethostname()} has release {VERSION} of the appliance and the replicator {version}: "
            "install the same on every host of the Spark cluster"
        )


def own_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this host; SettingsError if there are none, or they are faulty."""
    host = socket.gethostname()
    if ENV_FILE_VARIABLE not in environment:
        raise SettingsError([f"{ENV_FILE_VARIABLE}: missing on {host}: start its worker by `appliance spark worker`"])
    try:
        return read_settings(Path(environment[ENV_FILE_VARIABLE]), Role.REPLICATOR, environment)
    except SettingsError as error:
        raise SettingsError([f"on {host}: {fault}" for fault in error.faults]) from error
