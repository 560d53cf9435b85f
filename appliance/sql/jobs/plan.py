"""The plan of the jobs that run the SQL: rows from a lane's process, the statement, rows back to it.

It is prepared once: a plan made anew for each job would cost more than the job. Each task has a partition of it, and a
job runs one of them. Both ends are Python functions over Arrow's rows, made without ``DataFrame.mapInArrow``, which
asks for pandas. Each end has processes of its own: PySpark tells them apart by their environment.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from appliance.engine.model.ranges import Range
from appliance.errors import ProcessFailed
from appliance.kafka.records.outgoing import records_at
from appliance.settings.secret import Secret
from appliance.spark.host import require_release
from appliance.spark.session import Spark, spark_error
from appliance.sql.catalyst import SPARK_ERRORS, record_reason
from appliance.sql.evaluation import Evaluation
from appliance.sql.flight.ends import sink, source
from appliance.sql.jobs.job_ends import Attempt, Lanes, connected
from appliance.sql.jobs.jobs import JobFailed, Sql
from appliance.sql.model.statement import RANGE, TYPES, Statement
from appliance.sql.plan import contents, needed
from appliance.version import VERSION

# It shows each error as a stack of Java's, which the driver shows as a line.
logging.getLogger("SQLQueryContextLogger").disabled = True

_ROLE = "APPLIANCE_TRANSFORM_END"

Rows = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def prepare(spark: Spark, statement: Statement, salt: Secret, sockets: Lanes) -> Sql:
    """Prepare the SQL for the tasks at these sockets, or on other hosts."""
    try:
        return TransformPlan(spark.context, statement, salt, sockets)
    except SPARK_ERRORS as error:
        raise ProcessFailed(spark_error(str(error))) from error


class TransformPlan:
    """The prepared plan, with a partition for each task, whose process is at a socket, or on another host."""

    def __init__(self, context: Any, statement: Statement, salt: Secret, sockets: Lanes) -> None:
        self._context, self._session = context, SparkSession(context)
        self._statement, self._salt = statement, salt
        self._evaluation: Evaluation | None = None
        self._one = threading.Lock()
        self._prepared = self._plan(sockets)

    def run(self, task: int) -> None:
        """See ``Sql``."""
        try:
            self._prepared.collectPartitions(self._only(task))
        except (*SPARK_ERRORS, OSError) as error:
            raise JobFailed(type(error).__name__, spark_error(str(error)), record_reason(error, "")) from error

    def reason(self, record: Range) -> str:
        """See ``Sql``."""
        (batch,) = record.batches
        (alone,) = records_at(batch, [record.start])
        try:
            with self._one:
                evaluation = self._evaluation = self._evaluation or Evaluation(
                    self._session, self._statement, self._salt
                )
                return evaluation.reason(record.partition, alone, int(batch.append_time))
        except OSError as error:
            return str(error)

    def _only(self, task: int) -> Any:
        """Java's array of one task."""
        gateway = self._context._gateway
        partitions = gateway.new_array(gateway.jvm.int, 1)
        partitions[0] = task
        return partitions

    def _plan(self, sockets: Lanes) -> Any:
        session, statement, salt, context, release = self._session, self._statement, self._salt, TaskContext, VERSION
        needs = needed(session, statement, bool(salt))
        inputs = needs.inputs

        # The functions name nothing of this file: their processes would load all that it imports.
        def attempted() -> Attempt:
            require_release(release)
            task: Any = context.get()
            return Attempt(task.partitionId(), task.stageId(), task.taskAttemptId())

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            attempt = attempted()
            for _ in batches:
                yield from source(partial(connected, sockets, attempt), attempt.number, inputs, salt)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            attempt = attempted()
            yield from sink(partial(connected, sockets, attempt), attempt.number, batches)

        # A secret in rows, and in the function that makes them: no plan shows it.
        kinds = TYPES | {name: f"{TYPES[name]} NOT NULL" for name in (RANGE, "offset", "timestamp")}
        columns = ", ".join(f"{name} {kinds[name]}" for name in inputs)
        rows = self._over(session.range(0, len(sockets), 1, len(sockets)), read, columns, "source")
        ended = self._over(contents(session, statement, rows, needs.outputs), write, "nothing INT", "sink")
        return ended._jdf.queryExecution().toRdd().toJavaRDD()

    def _over(self, frame: DataFrame, function: Rows, columns: str, role: str) -> DataFrame:
        self._context.environment[_ROLE] = role
        try:
            udf = UserDefinedFunction(function, columns, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
            rows = frame._jdf.mapInArrow(udf(*[frame[name] for name in frame.columns])._jc, False, None)
        finally:
            del self._context.environment[_ROLE]
        return DataFrame(rows, frame.sparkSession)
