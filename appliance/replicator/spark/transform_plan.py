"""The plan of the jobs that run the SQL: rows from a lane's process, the statement, rows back to it.

It is prepared once for each task: a plan made anew for each job would cost more than the job. Both ends are Python
functions over Arrow's rows, made without ``DataFrame.mapInArrow``, which asks for pandas. Each end has processes of its
own: PySpark tells them apart by their environment.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from appliance.replicator.transform.ends import sink, source
from appliance.settings.secret import Secret
from appliance.transform.model.statement import COLUMNS, SALT, Statement
from appliance.transform.plan import transformed

# It shows each error as a stack of Java's, which the driver shows as a line.
logging.getLogger("SQLQueryContextLogger").disabled = True
# It checks the version of pandas, if there is one, which nothing here uses.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)

_ROLE = "APPLIANCE_TRANSFORM_END"

Rows = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class TransformPlan:
    """The prepared plans, one for each task's socket."""

    def __init__(self, context: Any, statement: Statement, salt: Secret, sockets: Sequence[str]) -> None:
        self._context = context
        session = SparkSession(context)
        self._prepared = [self._plan(session, statement, salt, path) for path in sockets]

    def run(self, task: int) -> None:
        """Run one job of a task; it waits for records, and returns once they have passed.

        Raises:
            Py4JError: it has failed.
        """
        self._prepared[task].count()

    def _plan(self, session: SparkSession, statement: Statement, salt: Secret, path: str) -> Any:
        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                yield from source(path, _attempt(), salt)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from sink(path, _attempt(), batches)

        # A secret in rows, and in the function that makes them: no plan shows it.
        columns = ", ".join(f"{name} {kind}" for name, kind in {**COLUMNS, SALT: "STRING"}.items())
        rows = self._over(session.range(0, 1, 1, 1), read, columns, "source")
        rows = rows if salt else rows.drop(SALT)
        ended = self._over(transformed(session, statement, rows), write, "nothing INT", "sink")
        return ended._jdf.queryExecution().toRdd()

    def _over(self, frame: DataFrame, function: Rows, columns: str, role: str) -> DataFrame:
        self._context.environment[_ROLE] = role
        try:
            udf = UserDefinedFunction(function, columns, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
            made = frame._jdf.mapInArrow(udf(*[frame[name] for name in frame.columns])._jc, False, None)
        finally:
            del self._context.environment[_ROLE]
        return DataFrame(made, frame.sparkSession)


def _attempt() -> int:
    context = TaskContext.get()
    assert context is not None
    return context.taskAttemptId()
