"""The process that forks Spark's Python workers: PySpark's own daemon, with our code loaded before it forks.

So a worker starts in milliseconds rather than in half a second, shares the code's memory with its siblings, and dies
with the daemon. PySpark's daemon ends its workers by SIGHUP alone, which a freshly forked worker ignores.
"""

import gc
import os
import sys
import traceback

import pyspark.worker  # noqa: F401  what each fork would import
from pyspark import daemon

import appliance.engine.task.worker
import appliance.sql.jobs.listener  # noqa: F401  what each task would import
from appliance.runtime.child_process import die_with
from appliance.runtime.confinement import keep_memory_private


class _Reports:
    """PySpark's reports of its workers' errors, except of a connection that Spark has closed.

    That is how a worker learns that its task was given up, or that the JVM has ended.
    """

    @staticmethod
    def print_exc() -> None:
        """Report the error that is being handled."""
        if not isinstance(sys.exception(), OSError):
            traceback.print_exc()

    format_exc = staticmethod(traceback.format_exc)


def main() -> None:
    """Fork workers until Spark is gone."""
    keep_memory_private()
    own = os.getpid()
    setattr(daemon, "traceback", _Reports)  # noqa: B010
    os.register_at_fork(after_in_child=lambda: die_with(own))
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
