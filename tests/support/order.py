"""A setenv.sh of a total order in three clusters: valid values, for tests to change, and their faults."""

import pytest

from appliance.errors import SettingsError
from appliance.settings.order import OrderSettings, parse_order
from appliance.settings.role import EVERY_ROLE, Role
from tests.support.settings import SECRET

ADDRESSES = {"orange": "203.0.113.7", "grape": "198.51.100.9", "us-east.1": "192.0.2.5"}

CLUSTERS = ",".join(f"{name}@{address}" for name, address in ADDRESSES.items())

ORDER = {
    "GLOBAL_CLUSTERS": CLUSTERS,
    "GLOBAL_CLUSTER": "grape",
    "GLOBAL_HOME": "orange",
    "GLOBAL_TOPICS_REGEX": r"orders\..*|payments",
    "SHARED_SECRET": SECRET,
    "ORANGE_BROKER_SERVERS": "b0.orange.example:9092,b1.orange.example:9093",
    "ORANGE_API_KEY": "orange-key",
    "ORANGE_API_SECRET": "orange$ecret",
    "GRAPE_BROKER_SERVERS": "b0.grape.example:9092",
    "GRAPE_API_KEY": "grape-key",
    "GRAPE_API_SECRET": "grape $HOME `secret` #1",
    "US_EAST_1_BROKER_SERVERS": "b0.us-east.example:9092",
    "US_EAST_1_API_KEY": "us-key",
    "US_EAST_1_API_SECRET": "us secret",
}


def order(role: Role = EVERY_ROLE, **changes: str) -> OrderSettings:
    """The settings with these variables changed."""
    return parse_order(ORDER | changes, role)


def order_faults(role: Role = EVERY_ROLE, **changes: str) -> tuple[str, ...]:
    """The faults of the settings with these variables changed."""
    with pytest.raises(SettingsError) as refusal:
        parse_order(ORDER | changes, role)
    return refusal.value.faults
