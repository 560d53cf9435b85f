"""Spark for a command, on this host and in a JVM of its own, beside whatever replicator runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from appliance.settings.values import EngineSettings
from appliance.spark.session import Spark
from appliance.spark.spark_jvm import spark_jvm
from appliance.spark.tempdir import tempdir


@contextlib.asynccontextmanager
async def local_spark(engine: EngineSettings, name: str, env_file: Path) -> AsyncIterator[Spark]:
    """Start it; it ends with the block.

    Raises:
        ProcessFailed: Spark does not start.
    """
    engine = replace(engine, spark_master="local[*]")
    with tempdir(name) as directory:
        async with spark_jvm(engine, name, env_file, directory) as jvm:
            spark = await asyncio.to_thread(Spark, *await jvm.gateway(), engine)
            try:
                yield spark
            finally:
                spark.let_go()
