"""The refusals of parts of a statement: Catalyst's names, functions, places in the text, and what is wrong. Pure.

A function must give the same answer whenever it is asked, because a record that is copied again, or verified, is
computed again. It must answer from its arguments alone, and for one row.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from appliance.sql.model.statement import COLUMNS, SALT

Place = tuple[int, int]
"""The first and last character of a part of the text."""

FORM = "expected SELECT key, value, headers FROM records WHERE ...: projections and filters alone"
ANOTHER_TIME = "the constant means another time each day: write the time itself"
KEYED = "has a key that the SQL shows: put it into REPLICA_TRANSFORM_SALT_FILE's file, and write salt or unhex(salt)"
RANDOM_IV = "aes_encrypt draws its IV at random: give it one, or use mode 'ECB'"

_HASHED = f"{SALT} is hashed alone, so that nothing shows it: sha2(concat({SALT}, ...), 256)"
_STARRED = f"the star takes {SALT} along, and {SALT} is hashed alone: name the columns, or write * EXCEPT ({SALT})"

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


def of_plan(name: str) -> str:
    """The refusal of a plan of this class."""
    return f"{_PLANS.get(name, f'{name} is not known here')}; {FORM}"


def of_expression(name: str) -> str:
    """The refusal of an expression of this class; empty if it is not refused by its class."""
    return f"{_EXPRESSIONS[name]}; {FORM}" if name in _EXPRESSIONS else ""


def of_output(name: str) -> str:
    """The refusal of a column that no record has after the statement."""
    if name in COLUMNS:
        return f"the column {name} stays as it is in the record: remove it from the SELECT"
    return f"the column {name} is none of key, value and headers: name it AS one of them, or remove it"


@dataclass(frozen=True, slots=True)
class Places:
    """The places of stars, of the salt and of hashes, as the parser has read them."""

    stars: list[Place] = field(default_factory=list)
    salts: list[Place] = field(default_factory=list)
    hashes: list[Place] = field(default_factory=list)

    def of_salt(self, above: Sequence[Place | None], length: int) -> tuple[str, Place | tuple[()]]:
        """The refusal of the salt below expressions with these places, and its own place in a text of this length.

        Spark's analysis gives an attribute the place of another.
        """
        around = next((place for place in reversed(above) if place), (0, length))
        hashes = [place for place in self.hashes if _is_within(place, around) and place != around]
        inside = [place for place in self.salts if _is_within(place, around)]
        if unhashed := [place for place in inside if not any(_is_within(place, each) for each in hashes)]:
            return _HASHED, unhashed[-1]
        if above and any(_is_within(place, around) for place in self.stars):
            return _STARRED, around
        return _HASHED, around if above else ()


def _is_within(place: Place, around: Place) -> bool:
    return around[0] <= place[0] and place[1] <= around[1]


def snake_case(name: str) -> str:
    """The name of a function by that of its class."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


_GROUPS = (
    *("array", "bitwise", "collection", "conditional", "conversion", "csv", "datetime", "hash", "json", "lambda"),
    *("map", "math", "predicate", "string", "struct", "url", "variant", "xml"),
)
GROUPS = frozenset(f"{name}_funcs" for name in _GROUPS)
"""The groups whose functions are allowed, but for those that are refused below."""

OTHERS = frozenset({"aes_decrypt", "aes_encrypt", "assert_true", "hmac", "raise_error", "try_aes_decrypt", "typeof"})
"""The allowed functions of other groups."""

_CLOCK = re.compile(r"now|curdate|current_.*|localtime.*|.*_now")
_RANDOM = re.compile(r"rand.*|random|uniform|shuffle|uuid.*")
_PLACE = re.compile(r"input_file_.*|spark_partition_id|monotonically_increasing_id|version|user|session_user")
_CODE = re.compile(r"reflect|java_method|try_reflect")
_WINDOW = re.compile(r"window|session_window|window_time|.*_agg")
_ROWS = re.compile(r"json_tuple")

_REASONS = {
    _CLOCK: "reads the clock or the session, and gives another value when the record is copied again: use timestamp",
    _RANDOM: "is random, and gives another value when the record is copied again: use sha2 or xxhash64 of the key",
    _PLACE: "tells where Spark runs and not what is in the record: use topic, partition and offset",
    _CODE: "runs Java code: write it with Spark SQL's functions",
    _WINDOW: "groups records, and each record is copied alone: remove it",
    _ROWS: "may make several rows of a record, and each record is copied once: use get_json_object",
}

CLASSES = re.compile(
    "Current(Date|Time|Timestamp|User|Catalog|Database|Path|TimeZone)[A-Za-z]*|Now|LocalTimestamp[A-Za-z]*"
    "|SparkVersion|CurrentBatchTimestamp|InputFile[A-Za-z]*|CallMethodViaReflection|TryReflect|UserDefined[A-Za-z]*"
    "|[A-Za-z]*UDF|VariableReference|[A-Za-z]*Subquery[A-Za-z]*|[A-Za-z]*Parameter"
)
"""Classes of expressions, by which Spark's analysis means what is refused as a function."""

SPECIAL_TIMES = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
"""Words that mean another time each day, if a constant with them becomes a date or a time."""


def refusal(name: str, group: str) -> str:
    """The reason that a statement may not use a function of a group; empty if it may."""
    for pattern, reason in _REASONS.items():
        if pattern.fullmatch(name):
            return f"{name} {reason}"
    if name in OTHERS or group in GROUPS:
        return ""
    if group in ("agg_funcs", "window_funcs"):
        return f"{name} computes over several records, and each record is copied alone: remove it"
    if group in ("generator_funcs", "table_funcs"):
        return f"{name} may make several rows of a record, and each record is copied once: use transform or filter"
    return f"{name} is not among the functions that a statement may use: {group or 'it has no group'}"
