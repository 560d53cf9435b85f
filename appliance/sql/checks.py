"""The checks of a statement: of what the parser has read, and of what Spark's analysis has made of it. Nothing runs."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from appliance.sql.catalyst import SPARK_ERRORS, Catalyst, class_of, spark_place, spark_reason
from appliance.sql.model.functions import CLASSES, SPECIAL_TIMES, refusal
from appliance.sql.model.statement import (
    COLUMNS,
    HEADERS_TYPE,
    INTERNAL,
    OUTPUTS,
    RECORDS,
    SALT,
    TIMESTAMP,
    Statement,
    StatementRefused,
)

_PLANS = {
    "Aggregate": "GROUP BY and aggregates compute over several records",
    "UnresolvedHaving": "HAVING computes over several records",
    "Distinct": "DISTINCT compares records with each other",
    "Deduplicate": "DISTINCT compares records with each other",
    "Sort": "ORDER BY and SORT BY change the order of records",
    "Join": "a join combines relations",
    "LateralJoin": "LATERAL combines relations",
    "AsOfJoin": "a join combines relations",
    "GlobalLimit": "LIMIT depends on other records",
    "LocalLimit": "LIMIT depends on other records",
    "Offset": "OFFSET depends on other records",
    "Union": "UNION makes several records of one",
    "Intersect": "INTERSECT compares records with each other",
    "Except": "EXCEPT compares records with each other",
    "UnresolvedWith": "WITH is not known here: write that query in parentheses after FROM",
    "Generate": "LATERAL VIEW may make several records of one",
    "UnresolvedHint": "hints mean nothing here",
    "Sample": "TABLESAMPLE is random",
    "WithWindowDefinition": "WINDOW computes over several records",
    "Window": "window functions compute over several records",
    "RepartitionByExpression": "DISTRIBUTE BY and CLUSTER BY move records",
    "OneRowRelation": "it has no FROM",
    "UnresolvedInlineTable": "VALUES is another relation",
    "LocalRelation": "VALUES is another relation",
    "UnresolvedTableValuedFunction": "a table function is another relation",
}
"""Catalyst's plans, by their names, and what is wrong with them in a statement."""

_EXPRESSIONS = {
    "Exists": "EXISTS reads another relation",
    "ListQuery": "a subquery reads another relation",
    "InSubquery": "IN (SELECT ...) reads another relation",
    "ScalarSubquery": "a subquery reads another relation",
    "WindowExpression": "OVER computes over several records",
    "UnresolvedWindowExpression": "OVER computes over several records",
    "NamedParameter": "parameters have no values here",
    "PosParameter": "parameters have no values here",
}

_HASHES = ("Sha2", "Hmac")
_JOINS = ("Concat", "ConcatWs", "StaticInvoke", "Unhex")
"""The functions between a hash, or a cipher, and the salt: none that could fail, because Spark would log its
arguments. Hmac is a ``StaticInvoke`` itself."""

_ALGORITHM = 2
"""The argument of Hmac that Spark shows in an error, because it knows no such algorithm."""

_KEYS = {"AesEncrypt": 1, "AesDecrypt": 1, "Hmac": 0}
"""The argument that is the key."""
_KEYED = "has a key that the SQL shows: put it into REPLICA_TRANSFORM_SALT_FILE's file, and write salt or unhex(salt)"

_HASHED = f"{SALT} is hashed alone, so that nothing shows it: sha2(concat({SALT}, ...), 256)"
_STARRED = f"the star takes {SALT} along, and {SALT} is hashed alone: name the columns, or write * EXCEPT ({SALT})"

_TEXTS = ("StringType$", "StringType", "BinaryType$")
_TIMES = ("DateType$", "TimestampType$", "TimestampNTZType$")
_ANOTHER_TIME = "the constant means another time each day: write the time itself"

_Place = tuple[int, int]

_FORM = "expected SELECT key, value, headers FROM records WHERE ...: projections and filters alone"
_AS = re.compile(r"\bAS\b", re.IGNORECASE)


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
    check = _Check(catalyst, statement)
    parsed = check.spark(lambda: catalyst.parsed(statement.text))
    seen = [name for name in records.columns if name not in INTERNAL]
    base = records.selectExpr(*(f"{TIMESTAMP} AS timestamp" if name == "timestamp" else name for name in seen))
    base = base._jdf.queryExecution().analyzed()
    over = check.parsed(parsed, base)
    plan = check.spark(lambda: catalyst.analysed(over))
    check.analysed(plan, base)
    check.outputs(plan, base)
    return Checked(plan, base)


class _Check:
    """The check of one statement."""

    def __init__(self, catalyst: Catalyst, statement: Statement) -> None:
        self._catalyst = catalyst
        self._statement = statement
        self._stars: list[_Place] = []
        self._salts: list[_Place] = []
        self._hashes: list[_Place] = []
        self._salt: int | None = None
        self._own: Collection[int] = ()

    def spark(self, step: Any) -> Any:
        """The result of a step of Spark's; its error is the statement's."""
        try:
            return step()
        except SPARK_ERRORS as error:
            place = spark_place(error, self._statement.text.splitlines(keepends=True))
            raise self._statement.refused(spark_reason(error), *(place or ())) from error

    def refused(self, node: Any, reason: str) -> StatementRefused:
        """The refusal of a node."""
        return self._statement.refused(reason, *(self._catalyst.place(node) or ()))

    def parsed(self, plan: Any, base: Any) -> Any:
        """Check what the parser has read; the same plan over the plan of the records."""
        match name := class_of(plan):
            case "UnresolvedRelation":
                return self._relation(plan, base)
            case "SubqueryAlias":
                self._alias_of_relation(plan)
            case "Project" | "Filter":
                for expression in self._expressions(plan):
                    self._parsed_expression(expression)
            case _:
                raise self.refused(plan, f"{_PLANS.get(name, f'{name} is not known here')}; {_FORM}")
        return plan.withNewChildren(
            self._catalyst.seq(self.parsed(child, base) for child in self._catalyst.children(plan))
        )

    def _relation(self, plan: Any, base: Any) -> Any:
        name = ".".join(self._catalyst.items(plan.multipartIdentifier()))
        if name.lower() != RECORDS:
            raise self.refused(plan, f"there is no relation {name}: write FROM {RECORDS}")
        identifier = self._catalyst.named("org.apache.spark.sql.catalyst.AliasIdentifier")(RECORDS)
        return self._catalyst.named("org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias")(identifier, base)

    def _alias_of_relation(self, plan: Any) -> None:
        keywords = self._catalyst.named("org.apache.spark.sql.catalyst.util.SQLKeywordUtils").keywords()
        if (name := plan.alias()).upper() in self._catalyst.items(keywords):
            last = len(self._statement.text.rstrip()) - 1
            raise self._statement.refused(
                f"{name} would be another name of {RECORDS}: write what belongs after it, or remove it",
                *(self._catalyst.place(plan) or (last, last)),
            )

    def _parsed_expression(self, expression: Any) -> None:
        for node in self._catalyst.below(expression):
            match name := class_of(node):
                case "UnresolvedFunction":
                    self._function(node)
                case "Alias":
                    self._alias(node)
                case "UnresolvedStar" | "UnresolvedStarExceptOrReplace":
                    self._stars.append(self._catalyst.place(node) or (-1, -1))
                case "UnresolvedAttribute":
                    if (place := self._catalyst.place(node)) and node.nameParts().last().lower() == SALT:
                        self._salts.append(place)
                case "Literal":
                    self._literal(node)
                case _ if name in _EXPRESSIONS:
                    raise self.refused(node, f"{_EXPRESSIONS[name]}; {_FORM}")

    def _function(self, node: Any) -> None:
        parts = self._catalyst.items(node.nameParts())
        name = parts[-1].lower()
        if len(parts) > 1:
            raise self.refused(node, f"{'.'.join(parts)} is not known here: write {name}")
        found = self._catalyst.named("org.apache.spark.sql.catalyst.analysis.FunctionRegistry").expressions().get(name)
        if found.isEmpty():
            raise self.refused(node, f"Spark SQL has no function {name}")
        if reason := refusal(name, found.get()._1().getGroup()):
            raise self.refused(node, reason)
        if name.capitalize() in _HASHES and (place := self._catalyst.place(node)):
            self._hashes.append(place)

    def _literal(self, node: Any) -> None:
        """The parser has computed what ``TIMESTAMP 'now'`` is, so that its text alone shows it."""
        place = self._catalyst.place(node)
        quoted = self._statement.text[place[0] : place[1] + 1].partition("'")[2] if place else ""
        if class_of(node.dataType()) in _TIMES and SPECIAL_TIMES.match(quoted):
            raise self.refused(node, _ANOTHER_TIME)

    def _alias(self, node: Any) -> None:
        """A comma that is forgotten between two columns makes the second the name of the first."""
        whole, child = self._catalyst.place(node), self._catalyst.place(node.child())
        if whole and child and not _AS.search(self._statement.text[child[1] + 1 : whole[1] + 1]):
            name = node.name()
            raise self.refused(node, f"write AS before {name}, if it is another name, or a comma, if it is a column")

    def analysed(self, plan: Any, base: Any) -> None:
        """Check what Spark's analysis has made of it."""
        ids = {attribute.name(): attribute.exprId().id() for attribute in self._catalyst.items(base.output())}
        self._salt, self._own = ids.get(SALT), ids.values()
        for node in plans(self._catalyst, plan, base):
            if (name := class_of(node)) not in ("Project", "Filter", "SubqueryAlias"):
                raise self.refused(node, f"{_PLANS.get(name, f'{name} is not known here')}; {_FORM}")
            for expression in self._expressions(node):
                # A star passes the salt on as it is, without a new name. Nothing is made of it there.
                if not (name == "Project" and self._stars and self._is_salt(expression)):
                    self._analysed_expression(expression, (), within_hash=False)

    def _is_salt(self, node: Any) -> bool:
        """True for the salt itself, by its id: a column of the statement's own that is called salt has another."""
        return class_of(node) == "AttributeReference" and node.exprId().id() == self._salt

    def _salt_refused(self, above: Sequence[Any]) -> StatementRefused:
        """The refusal of the salt below these expressions. Spark's analysis gives an attribute the place of another."""
        places = (place for node in reversed(above) if (place := self._catalyst.place(node)))
        around = next(places, (0, len(self._statement.text)))
        hashes = [place for place in self._hashes if _is_within(place, around) and place != around]
        written = [
            place
            for place in self._salts
            if _is_within(place, around) and not any(_is_within(place, each) for each in hashes)
        ]
        if written:
            return self._statement.refused(_HASHED, *written[-1])
        if above and any(_is_within(place, around) for place in self._stars):
            return self._statement.refused(_STARRED, *around)
        return self._statement.refused(_HASHED, *(around if above else ()))

    def _analysed_expression(self, node: Any, above: Sequence[Any], within_hash: bool) -> None:
        name = class_of(node)
        if CLASSES.fullmatch(name):
            raise self.refused(node, refusal(_snake(name), "") or f"{name} is not known here")
        if not within_hash and self._is_salt(node):
            raise self._salt_refused(above)
        if name in _KEYS and not self._statement.earlier:
            self._key(node, list(self._catalyst.below(self._catalyst.children(node)[_KEYS[name]])))
        if name == "AesEncrypt":
            self._encryption(node)
        if name == "Cast":
            self._cast(node)
        within_hash = name in _HASHES or (within_hash and (name in _JOINS or self._is_text_cast(node)))
        for number, child in enumerate(self._catalyst.children(node)):
            is_algorithm, is_key = name == "Hmac" and number == _ALGORITHM, _KEYS.get(name) == number
            self._analysed_expression(child, (*above, node), is_key or (within_hash and not is_algorithm))
        if self._catalyst.is_a(node, "expressions.RuntimeReplaceable"):
            self._analysed_expression(node.replacement(), (*above, node), within_hash or name in _KEYS)
        if not node.deterministic():
            raise self.refused(node, f"{node.prettyName()} may give another value when the record is copied again")

    def _encryption(self, node: Any) -> None:
        mode, vector = node.mode(), node.iv()
        is_ecb = mode.foldable() and str(mode.eval(None)).upper() == "ECB"
        if vector.foldable() and not len(vector.eval(None) or b"") and not is_ecb:
            raise self.refused(node, "aes_encrypt draws its IV at random: give it one, or use mode 'ECB'")

    def _key(self, node: Any, key: Sequence[Any]) -> None:
        """Check the nodes of a key: of the salt, or of columns alone. The refusal shows no place, and so no key."""
        texts = any(class_of(each) == "Literal" and class_of(each.dataType()) in _TEXTS for each in key)
        columns = [each.exprId().id() for each in key if class_of(each) == "AttributeReference"]
        if self._salt not in columns and (texts or not columns or not {*columns} <= {*self._own}):
            raise self._statement.refused(f"{node.prettyName()} {_KEYED}")

    def _cast(self, node: Any) -> None:
        """A constant that becomes a date or a time."""
        child = node.child()
        if class_of(node.dataType()) not in _TIMES or not child.foldable():
            return
        if SPECIAL_TIMES.match(str(child.eval(None) or "")):
            raise self.refused(node, _ANOTHER_TIME)

    def _is_text_cast(self, node: Any) -> bool:
        return class_of(node) == "Cast" and class_of(node.dataType()) in ("BinaryType$", "StringType$")

    def outputs(self, plan: Any, base: Any) -> None:
        """Check the names and types of the columns of the result."""
        own = {attribute.exprId().id(): attribute.name() for attribute in self._catalyst.items(base.output())}
        seen: set[str] = set()
        for attribute in self._catalyst.items(plan.output()):
            name = attribute.name().lower()
            unchanged = own.get(attribute.exprId().id()) == name
            if name in seen:
                raise self._statement.refused(f"the column {name} stands twice in its SELECT")
            if name not in OUTPUTS and not unchanged:
                raise self._statement.refused(_not_an_output(name))
            if name in OUTPUTS and (fault := self._type_fault(name, attribute.dataType())):
                raise self._statement.refused(fault)
            seen.add(name)
        if not seen & OUTPUTS.keys():
            raise self._statement.refused("its SELECT has none of key, value and headers")

    def _type_fault(self, name: str, given: Any) -> str:
        kind = class_of(given)
        if kind in ("NullType$", "BinaryType$" if name != "headers" else ""):
            return ""
        if name != "headers":
            expected = "BINARY or STRING"
            return "" if kind.startswith("StringType") else f"the column {name} is {given.sql()}: expected {expected}"
        return "" if _are_headers(given) else f"the column {name} is {given.sql()}: expected {HEADERS_TYPE}"

    def _expressions(self, plan: Any) -> Iterator[Any]:
        yield from self._catalyst.items(plan.expressions())


def plans(catalyst: Catalyst, plan: Any, base: Any) -> Iterator[Any]:
    """The plans of a statement from the top to the records' own, which is not among them."""
    while not plan.equals(base):
        yield plan
        children = catalyst.children(plan)
        if len(children) != 1:
            return
        (plan,) = children


def _is_within(place: _Place, around: _Place) -> bool:
    return around[0] <= place[0] and place[1] <= around[1]


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _not_an_output(name: str) -> str:
    if name in COLUMNS:
        return f"the column {name} stays as it is in the record: remove it from the SELECT"
    return f"the column {name} is none of key, value and headers: name it AS one of them, or remove it"


def _are_headers(given: Any) -> bool:
    if class_of(given) != "ArrayType" or class_of(given.elementType()) != "StructType":
        return False
    fields = list(given.elementType().fields())
    names = [field.name().lower() for field in fields]
    kinds = [class_of(field.dataType()) for field in fields]
    return (
        names == ["key", "value"]
        and kinds[0].startswith("StringType")
        and (kinds[1] in ("BinaryType$", "NullType$") or kinds[1].startswith("StringType"))
    )
