"""Strangers at the gateway of PySpark while it starts; tests/spark/test_strangers.py has later ones."""

import asyncio
import contextlib
from pathlib import Path
from socket import create_connection

import psutil
import pytest

from appliance.spark.configuration import Application
from appliance.spark.py4j_gateway import closed_gateway
from appliance.spark.spark_jvm import spark_jvm
from tests.support.engine import ENGINE
from tests.support.patience import PATIENCE
from tests.support.processes import family, runs
from tests.support.spark_stranger import listeners, said

DRIVER = "org.apache.spark.deploy.SparkSubmit"
CALL = b"c\nz:java.lang.System\nexit\ni1\ne\n"


async def test_strangers_who_reach_the_gateway_before_us_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYSPARK_PIN_THREAD", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        monkeypatch.setenv(name, "")
    async with spark_jvm(Application(ENGINE, "link", tmp_path / "setenv.sh"), tmp_path) as jvm:
        port, secret = await jvm.gateway()
        (java,) = (process for process in family(psutil.Process().pid) if runs(process, DRIVER))
        assert ("127.0.0.1", port) in listeners(java)
        assert b"Authentication error" in await asyncio.to_thread(said, ("127.0.0.1", port), CALL)
        with contextlib.ExitStack() as held:
            strangers = [held.enter_context(create_connection(("127.0.0.1", port), PATIENCE)) for _ in range(50)]
            gateway = await asyncio.to_thread(closed_gateway, port, secret)
            for stranger in strangers:
                with contextlib.suppress(ConnectionResetError):
                    assert await asyncio.to_thread(stranger.recv, 1) == b""
        assert listeners(java) == set()
        clock = gateway.jvm.java.lang.System.currentTimeMillis
        assert all(await asyncio.gather(*(asyncio.to_thread(clock) for _ in range(3))))
        gateway._gateway_client.is_connected = False
