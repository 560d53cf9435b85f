"""The process that forks Spark's Python workers: PySpark's own daemon, with our code loaded before it forks.

So a worker starts in milliseconds rather than in half a second, shares the code's memory with its siblings, and dies
with the daemon. PySpark's daemon ends its workers by SIGHUP alone, which a freshly forked worker ignores.
"""

import gc
import os

import pyspark.worker  # noqa: F401  what each fork would import
from pyspark import daemon

import appliance.replicator.spark.worker  # noqa: F401  what each task would import
from appliance.runtime.child_process import die_with


def main() -> None:
    """Fork workers until Spark is gone."""
    own = os.getpid()
    os.register_at_fork(after_in_child=lambda: die_with(own))
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
