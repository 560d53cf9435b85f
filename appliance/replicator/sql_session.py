"""A session of Spark SQL for a command, in a JVM of its own, beside whatever replicator runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from appliance.replicator.spark.session import Spark
from appliance.replicator.spark.spark_jvm import spark_jvm
from appliance.replicator.spark.tempdir import tempdir
from appliance.settings.values import Settings


@contextlib.asynccontextmanager
async def sql_session(settings: Settings, env_file: Path) -> AsyncIterator[Any]:
    """Start it on this host, with one task; it ends with the block.

    Raises:
        ProcessFailed: Spark does not start.
    """
    engine = replace(settings.engine, spark_master="local[*]", tasks=1)
    name = f"{settings.replicator}-sql"
    with tempdir(name) as directory:
        async with spark_jvm(engine, name, env_file, directory) as jvm:
            spark = await asyncio.to_thread(Spark, *await jvm.gateway(), engine)
            try:
                yield await asyncio.to_thread(spark.sql_session)
            finally:
                spark.let_go()
