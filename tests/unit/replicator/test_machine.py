from pathlib import Path

import pytest

from appliance.replicator.machine import configuration
from tests.support.engine import ENGINE


@pytest.mark.parametrize(("length", "sockets"), [(63, "true"), (64, "false")])
def test_where_the_names_of_sockets_would_get_too_long_spark_uses_ports(length: int, sockets: str) -> None:
    scratch = Path("/".ljust(length, "x"))
    assert configuration(ENGINE, "link", scratch)["spark.python.unix.domain.socket.enabled"] == sockets
