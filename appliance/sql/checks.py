"""The checks of a statement: of what the parser has read, and of what Spark's analysis has made of it. Nothing runs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from appliance.sql.catalyst import HASHES, SPARK_ERRORS, TIMES, Catalyst, class_of, spark_place, spark_reason
from appliance.sql.model import refusals
from appliance.sql.model.refusals import CLASSES, SPECIAL_TIMES, Places, refusal
from appliance.sql.model.statement import (
    HEADERS_TYPE,
    INTERNAL,
    OUTPUTS,
    SALT,
    TIMESTAMP,
    Statement,
    StatementRefused,
)
from appliance.sql.parsed_check import ParsedCheck

_JOINS = ("Concat", "ConcatWs", "StaticInvoke", "Unhex")
"""The functions between a hash, or a cipher, and the salt: none that could fail, because Spark would log its
arguments. Hmac is a ``StaticInvoke`` itself."""

_ALGORITHM = 2
"""The argument of Hmac that Spark shows in an error, because it knows no such algorithm."""

_KEYS = {"AesEncrypt": 1, "AesDecrypt": 1, "Hmac": 0}
"""The argument that is the key."""

_TEXTS = ("StringType$", "StringType", "BinaryType$")


def checked(catalyst: Catalyst, statement: Statement, records: Any) -> tuple[Any, Any]:
    """The analysed plan of a statement over a DataFrame of records, and the plan of the records below it.

    StatementRefused with the reason, and its place in the text, if it may not be used.
    """
    parsed = _by_spark(statement, lambda: catalyst.parsed(statement.text))
    seen = [name for name in records.columns if name not in INTERNAL]
    base = records.selectExpr(*(f"{TIMESTAMP} AS timestamp" if name == "timestamp" else name for name in seen))
    base = base._jdf.queryExecution().analyzed()
    check = ParsedCheck(catalyst, statement)
    over = check.over(parsed, base)
    plan = _by_spark(statement, lambda: catalyst.analysed(over))
    AnalysedCheck(catalyst, statement, check.places, base).check(plan)
    return plan, base


def _by_spark(statement: Statement, step: Callable[[], Any]) -> Any:
    """The result of a step of Spark's; its error is the statement's."""
    try:
        return step()
    except SPARK_ERRORS as error:
        place = spark_place(error, statement.text.splitlines(keepends=True))
        raise statement.refused(spark_reason(error), *(place or ())) from error


class AnalysedCheck:
    """The check of one analysed statement, with the types of all columns.

    ``base`` is the plan of the records; the parser has read these places.
    """

    def __init__(self, catalyst: Catalyst, statement: Statement, places: Places, base: Any) -> None:
        self._catalyst = catalyst
        self._statement = statement
        self._places = places
        self._base = base
        self._own = {each.exprId().id(): each.name() for each in catalyst.items(base.output())}
        self._salt = next((number for number, name in self._own.items() if name == SALT), None)

    def check(self, plan: Any) -> None:
        """Check its plans and expressions, and the columns of its result."""
        for node in self._plans(plan):
            if (name := class_of(node)) not in ("Project", "Filter", "SubqueryAlias"):
                raise self._refused(node, refusals.of_plan(name))
            for expression in self._catalyst.items(node.expressions()):
                # A star passes the salt on as it is, without a new name. Nothing is made of it there.
                if not (name == "Project" and self._places.stars and self._is_salt(expression)):
                    self._analysed_expression(expression, (), within_hash=False)
        self._outputs(plan)

    def _plans(self, plan: Any) -> Iterator[Any]:
        """The plans from the top to the records' own, which is not among them."""
        while not plan.equals(self._base):
            yield plan
            children = self._catalyst.children(plan)
            if len(children) != 1:
                return
            (plan,) = children

    def _is_salt(self, node: Any) -> bool:
        """True for the salt itself, by its id: a column of the statement's own that is called salt has another."""
        return class_of(node) == "AttributeReference" and node.exprId().id() == self._salt

    def _salt_refused(self, above: Sequence[Any]) -> StatementRefused:
        """The refusal of the salt below these expressions."""
        around = [self._catalyst.place(node) for node in above]
        reason, place = self._places.of_salt(around, len(self._statement.text))
        return self._statement.refused(reason, *place)

    def _analysed_expression(self, node: Any, above: Sequence[Any], within_hash: bool) -> None:
        name = class_of(node)
        if CLASSES.fullmatch(name):
            raise self._refused(node, refusal(refusals.snake_case(name), "") or f"{name} is not known here")
        if not within_hash and self._is_salt(node):
            raise self._salt_refused(above)
        if name in _KEYS and not self._statement.earlier:
            self._key(node, list(self._catalyst.below(self._catalyst.children(node)[_KEYS[name]])))
        if name == "AesEncrypt":
            self._encryption(node)
        if name == "Cast":
            self._cast(node)
        within_hash = name in HASHES or (within_hash and (name in _JOINS or self._is_text_cast(node)))
        for number, child in enumerate(self._catalyst.children(node)):
            is_algorithm, is_key = name == "Hmac" and number == _ALGORITHM, _KEYS.get(name) == number
            self._analysed_expression(child, (*above, node), is_key or (within_hash and not is_algorithm))
        if self._catalyst.is_a(node, "expressions.RuntimeReplaceable"):
            self._analysed_expression(node.replacement(), (*above, node), within_hash or name in _KEYS)
        if not node.deterministic():
            raise self._refused(node, f"{node.prettyName()} may give another value when the record is copied again")

    def _encryption(self, node: Any) -> None:
        mode, vector = node.mode(), node.iv()
        is_ecb = mode.foldable() and str(mode.eval(None)).upper() == "ECB"
        if vector.foldable() and not len(vector.eval(None) or b"") and not is_ecb:
            raise self._refused(node, refusals.RANDOM_IV)

    def _key(self, node: Any, key: Sequence[Any]) -> None:
        """Check the nodes of a key: of the salt, or of columns alone. The refusal shows no place, and so no key."""
        texts = any(class_of(each) == "Literal" and class_of(each.dataType()) in _TEXTS for each in key)
        columns = [each.exprId().id() for each in key if class_of(each) == "AttributeReference"]
        if self._salt not in columns and (texts or not columns or not {*columns} <= self._own.keys()):
            raise self._statement.refused(f"{node.prettyName()} {refusals.KEYED}")

    def _cast(self, node: Any) -> None:
        """A constant that becomes a date or a time."""
        child = node.child()
        if class_of(node.dataType()) not in TIMES or not child.foldable():
            return
        if SPECIAL_TIMES.match(str(child.eval(None) or "")):
            raise self._refused(node, refusals.ANOTHER_TIME)

    def _is_text_cast(self, node: Any) -> bool:
        return class_of(node) == "Cast" and class_of(node.dataType()) in ("BinaryType$", "StringType$")

    def _outputs(self, plan: Any) -> None:
        """Check the names and types of the columns of the result."""
        seen: set[str] = set()
        for attribute in self._catalyst.items(plan.output()):
            name = attribute.name().lower()
            unchanged = self._own.get(attribute.exprId().id()) == name
            if name in seen:
                raise self._statement.refused(f"the column {name} stands twice in its SELECT")
            if name not in OUTPUTS and not unchanged:
                raise self._statement.refused(refusals.of_output(name))
            if name in OUTPUTS and (fault := self._type_fault(name, attribute.dataType())):
                raise self._statement.refused(fault)
            seen.add(name)
        if not seen & OUTPUTS.keys():
            raise self._statement.refused("its SELECT has none of key, value and headers")

    def _type_fault(self, name: str, column_type: Any) -> str:
        kind = class_of(column_type)
        if name == "headers":
            fits, expected = kind == "NullType$" or _are_headers(column_type), HEADERS_TYPE
        else:
            fits, expected = kind in ("NullType$", "BinaryType$") or kind.startswith("StringType"), "BINARY or STRING"
        return "" if fits else f"the column {name} is {column_type.sql()}: expected {expected}"

    def _refused(self, node: Any, reason: str) -> StatementRefused:
        return self._statement.refused(reason, *(self._catalyst.place(node) or ()))


def _are_headers(column_type: Any) -> bool:
    if class_of(column_type) != "ArrayType" or class_of(column_type.elementType()) != "StructType":
        return False
    fields = list(column_type.elementType().fields())
    names = [field.name().lower() for field in fields]
    kinds = [class_of(field.dataType()) for field in fields]
    return (
        names == ["key", "value"]
        and kinds[0].startswith("StringType")
        and (kinds[1] in ("BinaryType$", "NullType$") or kinds[1].startswith("StringType"))
    )
