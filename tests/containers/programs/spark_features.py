"""Uses in the image every part of Spark that the appliance uses, and prints a line for each; runs with ``python -``."""

import contextlib
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

MASTER = "spark://127.0.0.1:7077"
PAGE = "http://127.0.0.1:4077"


def count(rows: Iterator[object]) -> Iterator[int]:
    """The number of a partition's rows, computed in a Python worker."""
    yield sum(1 for _ in rows)


def use(master: str, directory: str) -> None:
    """Run SQL, Python in tasks, files and the page of a session on this master."""
    events = Path(directory) / "events"
    events.mkdir(exist_ok=True)
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(events), "spark.ui.port": "4077"}
    builder = SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1")
    spark = builder.config(map=conf).getOrCreate()
    rows = spark.range(100).selectExpr("id", "cast(id AS string) s", """from_json('{"a":1}', 'a int').a a""")
    assert rows.rdd.mapPartitions(count).sum() == rows.groupBy("a").count().collect()[0]["count"] == 100
    for form in ("parquet", "orc", "csv", "json"):
        files = f"{directory}/{form}"
        rows.write.mode("overwrite").format(form).save(files)
        assert spark.read.format(form).load(files).count() == 100
    rows.createOrReplaceTempView("t")
    windowed = spark.sql(
        "SELECT sum(id) OVER (ORDER BY id) x, regexp_extract(s, '(9+)') n FROM t ORDER BY id DESC LIMIT 1"
    )
    assert [tuple(row) for row in windowed.collect()] == [(4950, "99")]
    for path in ("/jobs/", "/api/v1/applications"):
        assert urllib.request.urlopen(PAGE + path).read()
    spark.stop()
    assert list(events.iterdir())
    print("used", master, flush=True)


def submitted(directory: str) -> None:
    """Run a program with spark-submit."""
    program = Path(directory) / "program.py"
    program.write_text("from pyspark import SparkContext\nprint('sum', SparkContext().parallelize(range(5)).sum())\n")
    ran = subprocess.run(["spark-submit", "--master", "local[1]", program], capture_output=True, text=True, check=False)
    assert "sum 10" in ran.stdout, ran.stderr
    # An API server that is not there: all that speaks to one is.
    kubernetes = ["--master", "k8s://https://127.0.0.1:9", "--conf", "spark.kubernetes.container.image=image"]
    ran = subprocess.run(["spark-submit", *kubernetes, program], capture_output=True, text=True, check=False)
    assert "KubernetesClientException" in ran.stderr, ran.stderr
    print("submitted", flush=True)


@contextlib.contextmanager
def part(name: str, *arguments: str) -> Iterator[None]:
    """A process of a Spark cluster."""
    process = subprocess.Popen(["spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Use all."""
    with tempfile.TemporaryDirectory() as directory:
        use("local[2]", directory)
        with (
            part("master.Master", "--port", "7077", "--webui-port", "4078"),
            part("worker.Worker", "--work-dir", directory, "--webui-port", "4079", MASTER),
        ):
            use(MASTER, directory)
        submitted(directory)


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    main()
