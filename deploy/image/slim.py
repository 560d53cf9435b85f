"""``python -m deploy.image.slim SITE``: removes from ``site-packages`` what the image has no use for.

Each pattern must match, so that a new version of a package that calls its files otherwise fails the build. What stays
is proved by tests that run the image: SQL in flight, the audit table, Spark clusters, executors as pods.
"""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

PYTHON: Mapping[str, str] = {
    "the demo's client": "confluent_kafka*",
    "tests": "**/tests",
    "sources": "**/*.a **/*.pxd **/*.pxi **/*.pyi **/*.pyx pyarrow/src",
    "headers": "**/*.h pyarrow/include numpy/_core/include",
    "builds and checks of NumPy's extensions": "numpy/f2py numpy/distutils numpy/_core/_simd.*",
    "examples": "pyspark/examples boto3/examples",
    "machine learning, pandas, and the remote shell in Spark": "pyspark/ml* pyspark/pandas pyspark/sql/connect",
    "Pygments' languages: nothing prints source text": "pygments/lexers/[!_]*",
    "Arrow Flight": "pyarrow/*_flight*",
    "second and third copies of Arrow's libraries": "pyarrow/libarrow_python*.so pyarrow/libarrow_python*.so.*.*.*",
}
"""What is removed, and its patterns below ``site-packages``."""

JARS: Mapping[str, str] = {
    "the remote shell and its server": "connect-repl spark-connect_*",
    "the store of streaming queries": "rocksdbjni-*",
    "Scala's compiler and shell": "scala-compiler-* spark-repl_* jline-*",
    "machine learning and its algebra": "spark-mllib* spark-graphx_* breeze* spire* cats-kernel_* algebra_* lapack-* "
    "blas-* arpack* JTransforms-* JLargeArrays-*",
    "Hive, without the vectors that ORC reads": "spark-hive* hive-[!s]* hive-se* hive-sh* derby* datanucleus-* "
    "libthrift-* libfb303-* HikariCP-* ST4-* antlr-runtime-* javax.jdo-* jdo-api-* javolution-* joda-time-* jpam-* "
    "super-csv-* opencsv-* commons-dbcp-* commons-pool-* jta-* transaction-api-*",
    "ZooKeeper: no master of ours keeps its state there": "curator-* zookeeper-*",
    "pipelines, and masters other than local, standalone and Kubernetes": "spark-pipelines_* spark-yarn_* volcano-*",
    "libraries for other systems": "netty-*-osx-* netty-*-windows-*",
}
"""What is removed from PySpark's jars, and its patterns below their folder."""

KEPT: Mapping[str, tuple[str, ...]] = {"botocore/data": ("*.json", "sts", "sso", "sso-oidc", "signin")}
"""Folders of which only these patterns stay: of AWS's services, those that log in."""


def slim(site: Path) -> None:
    """Remove what matches.

    Raises:
        FileNotFoundError: nothing matches one of the patterns.
    """
    for folder, unused in ((site, PYTHON), (site / "pyspark" / "jars", JARS)):
        for pattern in " ".join(unused.values()).split():
            found = list(folder.glob(pattern))
            if not found:
                raise FileNotFoundError(f"nothing matches {pattern} in {folder}: is it there by another name?")
            for path in found:
                _remove(path)
    for name, patterns in KEPT.items():
        stays = {path for pattern in patterns for path in (site / name).glob(pattern)}
        for path in set((site / name).iterdir()) - stays:
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    slim(Path(sys.argv[1]))
