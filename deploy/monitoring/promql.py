"""The metrics and labels of a PromQL expression, compared with ``appliance/metrics.py``.

This is no parser: promtool checks the grammar. Here an expression is the set of its selectors
(``metric{label="value"}``), and of the labels by which it groups.
"""

import re
from collections.abc import Iterable

from appliance.metrics import METRICS, Kind, Metric

TARGET_LABELS = frozenset({"job", "instance", "link"})
"""Labels of each target; ``monitoring/prometheus.yml`` sets ``link``."""

_SELECTOR = re.compile(r"\b(kafka_\w+|up)\b(?:\{([^}]*)\})?")
_MATCHED = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
_GROUPED = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_DROPPED = re.compile(r"\b(?:without|(?<!and )(?<!unless )ignoring)\s*\(([^)]*)\)")
"""Labels that the result lacks: the operators of sets keep those of their left side."""
_KEPT = re.compile(r"\bby\s*\(([^)]*)\)")


def faults(expression: str, shown: Iterable[str] = ()) -> list[str]:
    """The metrics and labels that do not exist, in the expression and among the labels ``shown`` of its result."""
    selectors = [(name, set(_MATCHED.findall(matchers))) for name, matchers in _SELECTOR.findall(expression)]
    unknown = [name for name, _ in selectors if name not in _LABELS]
    if unknown or not selectors:
        return [f"no metric of the list: {name}" for name in unknown or [expression]]
    wrong = [f"{name} has no label {label}" for name, labels in selectors for label in sorted(labels - _LABELS[name])]
    every = frozenset().union(*(_LABELS[name] for name, _ in selectors))
    wrong += [f"no metric here has the label {label}" for label in _names(_GROUPED, expression) if label not in every]
    result = (frozenset(_names(_KEPT, expression)) or every) - frozenset(_names(_DROPPED, expression))
    return wrong + [f"the result has no label {label}" for label in shown if label not in result]


def metrics(expression: str) -> set[str]:
    """The names of the list that an expression uses."""
    return {_OWNER[name] for name, _ in _SELECTOR.findall(expression) if name in _OWNER}


def restricted(expression: str, matchers: str) -> str:
    """The expression with ``matchers`` in each of its selectors."""

    def narrow(selector: re.Match[str]) -> str:
        return f"{selector[1]}{{{', '.join(filter(None, (selector[2], matchers)))}}}"

    return _SELECTOR.sub(narrow, expression)


def _names(pattern: re.Pattern[str], expression: str) -> list[str]:
    return [label for labels in pattern.findall(expression) for label in re.findall(r"\w+", labels)]


def _series(metric: Metric) -> dict[str, frozenset[str]]:
    """The time series of a metric, by name, with their labels."""
    labels = TARGET_LABELS | frozenset(metric.labels)
    if metric.kind is not Kind.HISTOGRAM:
        return {metric.name: labels}
    return {
        f"{metric.name}_bucket": labels | {"le"},
        f"{metric.name}_sum": labels,
        f"{metric.name}_count": labels,
    }


_OWNER = {name: metric.name for metric in METRICS.values() for name in _series(metric)}
_LABELS = {name: labels for metric in METRICS.values() for name, labels in _series(metric).items()} | {
    "up": TARGET_LABELS
}
