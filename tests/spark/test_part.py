"""The host-specific settings of a part of a Spark cluster."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.errors import SettingsError
from appliance.spark.spark_jvm import driver_host, private_file
from appliance.spark.standalone import Part, run_part
from tests.support.engine import ENGINE


def test_executors_find_the_driver_at_the_address_from_which_it_reaches_the_master() -> None:
    there = replace(ENGINE, spark_master="spark://127.0.0.9:7077,127.0.0.10:7077")
    assert driver_host(there) == "127.0.0.1"
    assert driver_host(replace(there, spark_driver_host="127.0.0.7")) == "127.0.0.7"
    assert driver_host(replace(ENGINE, spark_driver_host="127.0.0.7")) == "127.0.0.1"


def test_a_master_that_nobody_knows_is_a_fault_of_the_settings() -> None:
    with pytest.raises(SettingsError, match=r"SPARK_MASTER=spark://nobody\.invalid:7077: "):
        driver_host(replace(ENGINE, spark_master="spark://nobody.invalid:7077"))


def test_the_file_with_the_secret_is_new_and_its_owners_alone(tmp_path: Path) -> None:
    path = private_file(tmp_path / "spark.conf", "a=b\n")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        private_file(path, "")


async def test_without_a_cluster_in_the_settings_there_is_no_part_to_be(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"SPARK_MASTER=local\[\*\]: expected spark://host:port"):
        await run_part(ENGINE, Part.MASTER, None, None, tmp_path, asyncio.Event())
