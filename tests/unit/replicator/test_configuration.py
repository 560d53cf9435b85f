from dataclasses import replace
from pathlib import Path

import pytest

from appliance.replicator.configuration import configuration, properties_text, task_count
from appliance.settings.secret import Secret
from tests.support.engine import ENGINE

HOST = "10.0.0.5"
CLUSTER = replace(ENGINE, spark_master="spark://10.0.0.9:7077", tasks=6, spark_secret=Secret("of the cluster"))


@pytest.mark.parametrize(("length", "sockets"), [(63, "true"), (64, "false")])
def test_where_the_names_of_sockets_would_get_too_long_spark_uses_ports(length: int, sockets: str) -> None:
    scratch = Path("/".ljust(length, "x"))
    assert configuration(ENGINE, "link", scratch, HOST)["spark.python.unix.domain.socket.enabled"] == sockets


def test_a_cluster_gives_each_task_a_core_and_no_more() -> None:
    entries = configuration(CLUSTER, "link", Path("/scratch"), HOST)
    assert entries["spark.master"] == CLUSTER.spark_master
    assert entries["spark.cores.max"] == str(task_count(CLUSTER)) == "6"
    assert entries["spark.driver.host"] == entries["spark.driver.bindAddress"] == HOST


def test_nobody_without_the_secret_takes_part_in_a_cluster() -> None:
    entries = configuration(CLUSTER, "link", Path("/scratch"), HOST)
    assert entries["spark.authenticate"] == entries["spark.network.crypto.enabled"] == "true"
    assert entries["spark.authenticate.secret"] == "of the cluster"


def test_the_cluster_dials_the_ports_behind_the_seats() -> None:
    entries = configuration(replace(CLUSTER, spark_driver_port=15070), "link", Path("/scratch"), HOST)
    assert (entries["spark.driver.port"], entries["spark.driver.blockManager.port"]) == ("15071", "15072")
    assert "spark.driver.port" not in configuration(CLUSTER, "link", Path("/scratch"), HOST)


def test_the_file_of_properties_keeps_what_java_would_read_as_an_escape() -> None:
    assert properties_text({"a": r"one \two", "b": ""}) == "a=one \\\\two\nb=\n"
