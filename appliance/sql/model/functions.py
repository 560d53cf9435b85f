"""The functions of Spark SQL that a statement may use: by the groups of Spark's own list, and without some of them.

A function must give the same answer whenever it is asked, because a record that is copied again, or verified, is
computed again. It must answer from its arguments alone, and for one row.
"""

import re

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
