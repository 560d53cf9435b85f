"""The audit table in an object store, which a server of S3 on this host is."""

import asyncio
import io
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest
import pytest_asyncio
from pyarrow import parquet

from appliance.audit.store import store_of
from appliance.errors import StorageFailed
from testbed.jars import JarSet, classpath
from testbed.process import OwnedProcess
from tests.support.audit import AuditedRow, assert_tiled, spark_of
from tests.support.commands import command_line, settings_file
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]  # held by tests/real/audit, with a folder

_SDK = "2.57.8"
_AWS = "software.amazon.awssdk"
S3A = JarSet(
    (
        ("org.apache.hadoop", "hadoop-aws", "3.5.0"),
        *((_AWS, name, _SDK) for name in ("s3", "s3-transfer-manager", "sts", "apache-client")),
    ),
    "s3a",
    ((_AWS, "bundle"), ("io.netty", "*"), ("org.slf4j", "*"), ("org.wildfly.openssl", "*")),
)
RECORDS = 300


@dataclass(slots=True)
class Bucket:
    """A bucket of a server, and the environment of a process that writes there."""

    server: str
    directory: Path
    environment: Mapping[str, str] = field(init=False)
    client: Any = field(init=False)

    def __post_init__(self) -> None:
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        names = dict(zip(("aws_access_key_id", "aws_secret_access_key"), keys.values(), strict=True))
        self.client = boto3.client("s3", endpoint_url=f"http://{self.server}", region_name="us-east-1", **names)
        self.client.create_bucket(Bucket="bucket")
        options = {
            "spark.driver.extraClassPath": classpath(S3A),
            "spark.hadoop.fs.s3a.endpoint": f"http://{self.server}",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
        defaults = self.directory / "spark-defaults.conf"
        defaults.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        self.environment = {"SPARK_CONF_DIR": str(self.directory), **keys}

    def rows(self) -> list[AuditedRow]:
        """The rows of all files of the table."""
        found = self.client.list_objects_v2(Bucket="bucket", Prefix="audit/day").get("Contents", [])
        files = [self.client.get_object(Bucket="bucket", Key=each["Key"])["Body"].read() for each in found]
        return [row for file in files for row in parquet.ParquetFile(io.BytesIO(file)).read().to_pylist()]


@pytest_asyncio.fixture
async def bucket(tmp_path: Path) -> AsyncIterator[Bucket]:
    line = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    server = await OwnedProcess.start("s3", line, tmp_path / "s3.log", dict(os.environ))
    try:
        said = await server.wait_for_line("Running on http://", PATIENCE)
        yield Bucket(said.partition("http://")[2].strip(), tmp_path)
    finally:
        await server.kill()


async def run(bucket: Bucket, name: str, settings: Path, *options: str) -> OwnedProcess:
    log = bucket.directory / f"{name}-{len(list(bucket.directory.iterdir()))}.log"
    return await OwnedProcess.start(
        name, command_line(name, settings, *options), log, {**os.environ, **bucket.environment}
    )


async def test_an_object_is_made_once_by_one_of_two_writers_and_replaced_whole(
    bucket: Bucket, pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    async with spark_of(settings_file(pair, tmp_path)) as spark:
        one, two = (store_of("s3a://bucket/audit", spark.hadoop) for _ in range(2))
        assert one.sizes() == {}
        made = [store.create("_writes/1", content) for store, content in ((one, b"one"), (two, b"two"))]
        assert made == [True, False]
        assert two.read("_writes/1") == b"one"
        assert one.create("_writes/1", b"one"), "it is ours, though its answer was lost"
        one.replace("day=2026-11-25/1.parquet", b"rows")
        two.replace("day=2026-11-25/1.parquet", b"more rows")
        assert one.sizes() == {"_writes/1": 3, "day=2026-11-25/1.parquet": 9}
        one.remove("_writes/1")
        two.remove("_writes/1")
        with pytest.raises(StorageFailed, match=r"^AUDIT_PATH=s3a://bucket/audit: cannot read _writes/1: "):
            one.read("_writes/1")
        absent = store_of("s3a://no-such-bucket/audit", spark.hadoop)
        with pytest.raises(StorageFailed, match=r"^AUDIT_PATH=s3a://no-such-bucket/audit: cannot "):
            absent.create("_writes/1", b"")


@pytest.mark.release
async def test_a_table_in_an_object_store_has_every_record_once_after_a_kill_and_is_queried_there(
    bucket: Bucket, pair: Pair, tmp_path: Path
) -> None:
    topic = pair.topic("orders")
    changed = {"AUDIT_PATH": "s3a://bucket/audit", "AUDIT_ROW_SECONDS": "0", "AUDIT_FLUSH_SECONDS": "0.1"}
    settings = settings_file(pair, tmp_path, CONSOLE_LISTEN="127.0.0.1:0", TASKS="1", LANES="1", **changed)
    for round_, ended_by in enumerate((signal.SIGKILL, signal.SIGTERM), start=1):
        produce(pair.producer(), topic, RECORDS)
        replicator = await run(bucket, "replicate", settings)
        try:
            async with asyncio.timeout(PATIENCE):
                while sum(row["records"] for row in bucket.rows()) < round_ * RECORDS:
                    await asyncio.sleep(0.1)
            psutil.Process(replicator.pid).send_signal(ended_by)
            await replicator.wait(PATIENCE)
        finally:
            await replicator.kill()
    assert_tiled(bucket.rows(), begins=0)
    counted = "SELECT sum(records) AS records, min(source_from) AS first, max(source_to) AS end FROM audit"
    asked = await run(bucket, "audit", settings, counted, "--json")
    assert await asked.wait(PATIENCE) == 0, asked.failure("failed")
    lines = [line for line in asked.log_file.read_text().splitlines() if line.startswith("{")]
    assert json.loads(lines[-1]) == {"records": 2 * RECORDS, "first": 0, "end": 2 * RECORDS}
