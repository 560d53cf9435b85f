"""The checks of a statement: of what the parser has read, and of what Spark's analysis has made of it. Nothing runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from appliance.sql.analysed_check import AnalysedCheck
from appliance.sql.catalyst import SPARK_ERRORS, Catalyst, spark_place, spark_reason
from appliance.sql.model.statement import INTERNAL, TIMESTAMP, Statement
from appliance.sql.parsed_check import ParsedCheck


@dataclass(frozen=True, slots=True)
class Checked:
    """A statement that may be used: Catalyst's analysed plan, and the plan of the records below it."""

    plan: Any
    base: Any


def checked(catalyst: Catalyst, statement: Statement, records: Any) -> Checked:
    """Check a statement over a DataFrame of records.

    Raises:
        StatementRefused: with its reason, and its place in the text.
    """
    parsed = _by_spark(statement, lambda: catalyst.parsed(statement.text))
    seen = [name for name in records.columns if name not in INTERNAL]
    base = records.selectExpr(*(f"{TIMESTAMP} AS timestamp" if name == "timestamp" else name for name in seen))
    base = base._jdf.queryExecution().analyzed()
    check = ParsedCheck(catalyst, statement)
    over = check.over(parsed, base)
    plan = _by_spark(statement, lambda: catalyst.analysed(over))
    AnalysedCheck(catalyst, statement, check.places, base).check(plan)
    return Checked(plan, base)


def _by_spark(statement: Statement, step: Callable[[], Any]) -> Any:
    """The result of a step of Spark's; its error is the statement's."""
    try:
        return step()
    except SPARK_ERRORS as error:
        place = spark_place(error, statement.text.splitlines(keepends=True))
        raise statement.refused(spark_reason(error), *(place or ())) from error
