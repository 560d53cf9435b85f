"""A driver that requests executors from Kubernetes: its ports, and no disclosure of its secret."""

import asyncio
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from py4j.protocol import Py4JError

from appliance.errors import ProcessFailed
from appliance.spark.configuration import Application
from appliance.spark.session import Spark
from appliance.spark.spark_jvm import spark_jvm
from tests.support.engine import ENGINE
from tests.support.kubernetes_api import SPARK_DEFAULTS, kubernetes_api
from tests.support.patience import PATIENCE
from tests.support.processes import family, runs
from tests.support.spark_stranger import asked, block_request, listeners, rpc


@pytest.mark.release
async def test_on_kubernetes_strangers_are_refused_and_executors_get_the_secret_of_the_run_from_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(SPARK_DEFAULTS)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with kubernetes_api() as api:
        engine = replace(ENGINE, spark_master=api.master, spark_driver_host="127.0.0.1", tasks=1)
        async with spark_jvm(Application(engine, "link", tmp_path / "setenv.sh"), tmp_path) as jvm:
            gateway = await jvm.gateway()
            starting = asyncio.create_task(asyncio.to_thread(Spark, *gateway, engine))
            pod = await asyncio.to_thread(api.pods.get, timeout=PATIENCE)
            (container,) = pod["spec"]["containers"]
            environment = {variable["name"]: variable.get("value", "") for variable in container["env"]}
            secret = environment.pop("_SPARK_AUTH_SECRET")
            assert len(secret) >= 64
            assert secret not in str([*environment.values(), container["args"]])
            (java,) = (process for process in family(psutil.Process().pid) if runs(process, "pyspark-shell"))
            ports = [address for address in listeners(java) if address[1] != gateway[0]]
            assert len(ports) == 2
            for port in ports:
                assert (await asyncio.to_thread(asked, port, rpc(port, "CoarseGrainedScheduler"))).refused
                assert (await asyncio.to_thread(asked, port, block_request("broadcast_0_piece0"))).refused
        with pytest.raises((ProcessFailed, Py4JError)):  # Java has ended
            await starting
