"""``spark-submit`` with our package runs the replicator on a Spark cluster that knows nothing of the appliance."""

import asyncio
import os
import signal
import sys
import zipfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from appliance.spark.spark_jvm import LOOPBACK, spark_home
from bench.lib.running import free_port
from deploy.prepare import spark_package
from testbed.process import OwnedProcess
from tests.spark.test_transform import MASKED, masked
from tests.spark.test_transform import produce as send
from tests.support.commands import settings_file
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.processes import family, runs
from tests.support.records import produce
from tests.support.rows import read_rows, until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

CORES = 2
DEPLOY = "org.apache.spark.deploy"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@dataclass(frozen=True, slots=True)
class Existing:
    """A standalone cluster of Spark's own, whose Python has Spark and nothing else."""

    master: str
    worker: OwnedProcess
    environment: Mapping[str, str]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Existing]:
    """One master and one worker."""
    directory = tmp_path_factory.mktemp("spark")
    environment = {
        "PATH": os.pathsep.join([f"{sys.base_prefix}/bin", os.environ["PATH"]]),
        "SPARK_HOME": spark_home(),
        "SPARK_LOCAL_IP": LOOPBACK,
        "TMPDIR": str(directory),
        **{name: os.environ[name] for name in ("JAVA_HOME", "HOME") if name in os.environ},
    }
    master = f"spark://{LOOPBACK}:{free_port(LOOPBACK)}"
    parts = {
        "master": [f"{DEPLOY}.master.Master", "--host", LOOPBACK, "--port", master.rpartition(":")[2]],
        "worker": [f"{DEPLOY}.worker.Worker", "--cores", str(CORES), "--work-dir", str(directory / "work"), master],
    }
    started = []
    try:
        for name, command in parts.items():
            line = [f"{spark_home()}/bin/spark-class", *command[:1], "--webui-port", "0", *command[1:]]
            started.append(await OwnedProcess.start(name, line, directory / f"{name}.log", environment))
        await started[-1].wait_for_line("Successfully registered with master", PATIENCE)
        yield Existing(master, started[-1], environment)
    finally:
        for process in reversed(started):
            await process.kill()


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, unpacked beside it as the driver's host has it."""
    directory = tmp_path_factory.mktemp("package")
    assert spark_package.main([str(directory / "appliance.zip")]) == 0
    with zipfile.ZipFile(directory / "appliance.zip") as packed:
        packed.extractall(directory / "appliance")
    return directory


async def submit(cluster: Existing, package: Path, env_file: Path, *options: str, **changed: str) -> OwnedProcess:
    """A replicator that a user of the cluster has submitted."""
    archive = f"{package}/appliance.zip#appliance"
    line = [f"{spark_home()}/bin/spark-submit", "--master", cluster.master, "--archives", archive, *options]
    line += [f"{package}/appliance/submit.py", "--env-file", str(env_file)]
    environment = {**cluster.environment, "PYSPARK_PIN_THREAD": "false", **changed}
    return await OwnedProcess.start("spark-submit", line, env_file.with_suffix(".log"), environment)


@pytest.mark.release  # needs a Spark cluster, as test_cluster.py
async def test_a_submitted_replicator_copies_exactly_once_on_executors_that_have_only_the_package(
    pair: Pair, tmp_path: Path, cluster: Existing, package: Path
) -> None:
    orders = pair.topic("orders", 2)
    for partition in range(2):
        produce(pair.producer(), orders, 100, partition)
    env_file = settings_file(pair, tmp_path, TASKS=str(CORES), CONSOLE_LISTEN="127.0.0.1:0")
    replicator = await submit(cluster, package, env_file)
    try:
        for partition in range(2):
            assert await until_rows(pair.grape, f"{orders}.copy", 100, partition) == read_rows(
                pair.orange, orders, partition
            )
        (executor,) = (each for each in family(cluster.worker.pid) if runs(each, EXECUTOR))
        executor.kill()
        for partition in range(2):
            produce(pair.producer(), orders, 50, partition)
            assert await until_rows(pair.grape, f"{orders}.copy", 150, partition) == read_rows(
                pair.orange, orders, partition
            )
        driver = psutil.Process(replicator.pid)
        processes = [driver, *driver.children(recursive=True)]
        driver.send_signal(signal.SIGTERM)
        await replicator.wait(PATIENCE)
        _, alive = await asyncio.to_thread(psutil.wait_procs, processes, timeout=PATIENCE)
        assert not alive
    finally:
        await replicator.kill()


@pytest.mark.release  # needs the package, as the other one
async def test_records_pass_sql_on_executors_that_have_only_the_package(
    pair: Pair, tmp_path: Path, cluster: Existing, package: Path
) -> None:
    orders = pair.topic("orders")
    send(pair, orders, range(500))
    file = tmp_path / "transform.sql"
    file.write_text(MASKED)
    own = {"REPLICA_TRANSFORM_SQL_FILE": str(file), "CONSOLE_LISTEN": "127.0.0.1:0"}
    # A task needs two cores, and the cluster has two.
    env_file = settings_file(pair, tmp_path, TASKS="1", **own)
    replicator = await submit(cluster, package, env_file)
    try:
        copies = await until_rows(pair.grape, f"{orders}.copy", 250)
        assert copies == masked(read_rows(pair.orange, orders, 0))
    finally:
        await replicator.kill()


@pytest.mark.release  # needs the package, as the other one
async def test_what_spark_submit_lacks_is_said_in_one_line(
    pair: Pair, tmp_path: Path, cluster: Existing, package: Path
) -> None:
    env_file = settings_file(pair, tmp_path)
    for changed, said in (
        ({"PYSPARK_PIN_THREAD": "true"}, "appliance replicate: PYSPARK_PIN_THREAD: expected false"),
        ({}, f"appliance replicate: TASKS=0: expected how many cores of SPARK_MASTER={cluster.master} copy at once"),
    ):
        replicator = await submit(cluster, package, env_file, **changed)
        try:
            assert await replicator.wait(PATIENCE) == 2
        finally:
            await replicator.kill()
        assert said in replicator.log_file.read_text()
