"""Catalyst, Spark SQL's own trees of plans and expressions, by way of a session's JVM."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

SPARK_ERRORS = (PySparkException, Py4JError)

HASHES = ("Sha2", "Hmac")
TIMES = ("DateType$", "TimestampType$", "TimestampNTZType$")
"""Catalyst's classes, by their names."""

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""They would log every error, with its traceback, though it is caught."""

_SQL = "org.apache.spark.sql"
CATALYST = f"{_SQL}.catalyst"

_THROWN = re.compile(r"\n: org\.apache\.spark\.SparkException: \[([A-Z][\w.]*)\]|(?<= driver\): )([\w.$]+)")
_OF_NO_RECORD = ("sourceType", "targetType", "dataType", "functionName", "parameter")
"""The parameters of Spark's errors that are of the SQL alone."""

_AFTER_REASON = re.compile(r"(;\s*line \d+ pos \d+|\s*SQLSTATE: \w+|\n== SQL|\n\s*'?\w+ \[).*", re.DOTALL)


class Catalyst:
    """The classes of a session's Catalyst. Its nodes are Java objects, which Python only passes on."""

    def __init__(self, session: Any) -> None:
        for name in _LOGGERS:
            PySparkLogger.getLogger(name).disabled = True
        self.session = session._jsparkSession
        self._jvm = session._jvm
        self._gateway = session._sc._gateway
        self._classes: dict[str, Any] = {}
        self._kinds: dict[tuple[str, str], bool] = {}
        # ``SparkSqlParser`` would replace ``${env:NAME}`` in the text, and knows commands.
        self._parser = self.named(f"{CATALYST}.parser.CatalystSqlParser")()

    def named(self, name: str) -> Any:
        """A class by its whole name. Each look-up in Java takes a round trip, and a busy host makes those slow."""
        if name not in self._classes:
            self._classes[name] = getattr(self._jvm, name)
        return self._classes[name]

    def parsed(self, text: str) -> Any:
        """A text as a plan, of which nothing is looked up and nothing has run."""
        return self._parser.parsePlan(text)

    def analysed(self, plan: Any) -> Any:
        """The plan with its names and types, as Spark would run it; nothing runs."""
        rows = self.named(f"{_SQL}.classic.Dataset").ofRows(self.session, plan)
        return rows.queryExecution().analyzed()

    def expression(self, text: str, parts: Mapping[str, Any]) -> Any:
        """An expression of ours, in which each name of ``parts`` stands for that expression."""

        def filled(node: Any) -> Any:
            return parts.get(node.name()) if class_of(node) == "UnresolvedAttribute" else None

        return self.replaced(self._parser.parseExpression(text), filled)

    def column(self, expression: Any) -> Any:
        """A column of Java's ``Dataset``."""
        return self.named(f"{_SQL}.classic.ExpressionUtils").column(expression)

    def replaced(self, node: Any, by: Callable[[Any], Any]) -> Any:
        """A tree in which ``by`` replaces nodes; it returns None for those that stay."""
        if (new := by(node)) is not None:
            return new
        children = self.children(node)
        new_children = [self.replaced(child, by) for child in children]
        changed = any(new is not old for new, old in zip(new_children, children, strict=True))
        return node.withNewChildren(self.seq(new_children)) if changed else node

    def is_a(self, node: Any, name: str) -> bool:
        """True if it is of that class of Catalyst's, or of one below."""
        kind = class_of(node), name
        if kind not in self._kinds:
            self._kinds[kind] = bool(is_instance_of(self._gateway, node, f"{CATALYST}.{name}"))
        return self._kinds[kind]

    def children(self, node: Any) -> list[Any]:
        """The nodes below it."""
        return self.items(node.children())

    def below(self, node: Any) -> Iterator[Any]:
        """The node, and all nodes below it."""
        yield node
        for child in self.children(node):
            yield from self.below(child)

    def items(self, seq: Any) -> list[Any]:
        """The items of Scala's sequence. The end of an iterator is an exception, whose translation takes 70 calls."""
        return [seq.apply(number) for number in range(seq.length())]

    def seq(self, items: Iterable[Any]) -> Any:
        """Scala's sequence of the items."""
        return self._jvm.PythonUtils.toSeq(list(items))

    @staticmethod
    def place(node: Any) -> tuple[int, int] | None:
        """The first and last character of a node in the text, counted from 0."""
        origin = node.origin()
        first, last = origin.startIndex(), origin.stopIndex()
        return (int(first.get()), int(last.get())) if first.isDefined() and last.isDefined() else None


def class_of(node: Any) -> str:
    """The name of a node's class."""
    return str(node.getClass().getSimpleName())


def spark_reason(error: Exception) -> str:
    """The first sentence of an error of Spark's, without its plans, its code and its stack."""
    text = str(getattr(error, "_desc", None) or error).strip()
    text = re.sub(r"^\[[\w.]+\]\s*", "", text)
    return " ".join(_AFTER_REASON.sub("", text).split()) or type(error).__name__


def record_reason(error: Exception, sql: str) -> str:
    """The reason for which SQL fails on a record, with nothing of the record but texts that the SQL itself has."""
    parameters: Mapping[str, str] = getattr(error, "getMessageParameters", dict)() or {}
    if (own := parameters.get("errorMessage")) and f"'{own}'" in sql:
        return own
    thrown = _THROWN.search(str(error))
    condition = getattr(error, "getCondition", str)() or (thrown and (thrown[1] or thrown[2])) or type(error).__name__
    named_parameters = ", ".join(f"{name} {parameters[name]}" for name in _OF_NO_RECORD if name in parameters)
    context: Sequence[Any] = getattr(error, "getQueryContext", tuple)() or ()
    place = " ".join(context[0].fragment().split())[:100] if context else ""
    return condition + (f": {named_parameters}" if named_parameters else "") + (f" in {place}" if place else "")


def spark_place(error: Exception, lines: Sequence[str]) -> tuple[int, int] | None:
    """The first and last character that an error of Spark's points at, in the text of these lines."""
    context: Sequence[Any] = getattr(error, "getQueryContext", tuple)() or ()
    for each in context:
        return int(each.startIndex()), int(each.stopIndex())
    match = re.search(r"[(;]\s*line (\d+),? pos (\d+)", str(getattr(error, "_desc", "")))
    if match is None or not 1 <= int(match[1]) <= len(lines):
        return None
    first = sum(len(line) for line in lines[: int(match[1]) - 1]) + int(match[2])
    return first, first
