"""A setenv.sh: valid values of all required variables, for tests to change, their faults, and the file."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from appliance.errors import SettingsError
from appliance.settings.parse import parse
from appliance.settings.role import EVERY_ROLE, Role
from appliance.settings.values import Settings

SECRET = "G9n2pQ7sVw4xZ1aB8cD3eF6hJ0kL5mR/tUyIoO+="

REQUIRED = {
    "SOURCE_CLUSTER_ID": "orange",
    "SOURCE_BROKER_SERVERS": "b0.orange.example:9092,b1.orange.example:9093",
    "SOURCE_API_KEY": "orange-key",
    "SOURCE_API_SECRET": "orange$ecret",
    "DESTINATION_CLUSTER_ID": "grape",
    "DESTINATION_BROKER_SERVERS": "b0.grape.example:9092",
    "DESTINATION_API_KEY": "grape-key",
    "DESTINATION_API_SECRET": "grape $HOME `secret` #1",
    "REPLICA_TOPICS_SOURCE_REGEX": r"orders\..*|payments",
    "REPLICA_TOPICS_DEST_SUFFIX": "copy",
    "SOURCE_SIDE_TUNNEL_IP": "203.0.113.7",
    "DESTINATION_SIDE_TUNNEL_IP": "198.51.100.9",
    "SHARED_SECRET": SECRET,
}

DIRECT = {
    "SOURCE_ROUTE": "direct",
    **{
        name: value
        for name, value in REQUIRED.items()
        if name not in ("SOURCE_SIDE_TUNNEL_IP", "DESTINATION_SIDE_TUNNEL_IP", "SHARED_SECRET")
    },
}
"""The same without a tunnel, which needs none of its variables."""


def parsed(role: Role = EVERY_ROLE, **changes: str) -> Settings:
    """The settings with these variables changed."""
    return parse(REQUIRED | changes, role)


def faults(role: Role = EVERY_ROLE, **changes: str) -> tuple[str, ...]:
    """The faults of the settings with these variables changed."""
    return faults_of(REQUIRED | changes, role)


def faults_of(environment: Mapping[str, str], role: Role) -> tuple[str, ...]:
    """The faults of these variables."""
    with pytest.raises(SettingsError) as refusal:
        parse(environment, role)
    return refusal.value.faults


def write_settings(path: Path, variables: Mapping[str, str]) -> Path:
    """Write the file of these variables, with any values; only its owner may read it."""
    path.touch(mode=0o600)
    path.write_text("".join(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items()))
    return path
