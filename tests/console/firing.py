"""The alerts that fire over given series, by Prometheus's own promtool, and what is wrong with that."""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from deploy.monitoring.alerts import REPLICATOR_ALERTS
from tests.simulation.needs import Need
from tests.simulation.scrapes import EVERY, Series

_PREFIX = "KafkaReplicator"
_ASKED_EVERY = 2
"""Scrapes between two evaluations, after each of which it is asked what fires."""

_SOON, _LINGERS = 120, 150
"""Seconds within which a page shows a state that has begun, beside the time that an alert waits; and for which an alert
may go on when it has ended."""

_FIRING = 'sum by (alertname, topic) (ALERTS{alertstate="firing"})'
_SAMPLE = re.compile(r"\{([^{}]*\bhistory=[^{}]*)\} \S")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_SECONDS = {"m": 60, "s": 1, "h": 3600}


@dataclass(frozen=True, slots=True)
class Seen:
    """The series of a history, and the needs at each scrape."""

    name: str
    series: Series
    certain: Sequence[frozenset[Need]]
    arguable: Sequence[frozenset[Need]]


def conditions() -> dict[str, str]:
    """The replicator's alerts, by their name without the prefix."""
    return {alert.name.removeprefix(_PREFIX): alert.condition for alert in REPLICATOR_ALERTS}


def firing(
    directory: Path, seen: Sequence[Series], changed: Mapping[str, str] | None = None
) -> list[dict[int, frozenset[Need]]]:
    """The alerts that fire in each history at some of its scrapes; ``changed`` are other conditions of alerts."""
    (directory / "rules.yml").write_text(yaml.safe_dump(_rules({**conditions(), **(changed or {})})))
    tests = {"rule_files": ["rules.yml"], "evaluation_interval": f"{EVERY * _ASKED_EVERY}s"}
    scenarios = [_scenario(number, series) for number, series in enumerate(seen)]
    (directory / "series.yml").write_text(yaml.safe_dump({**tests, "tests": scenarios}))
    command = ["promtool", "test", "rules", str(directory / "series.yml")]
    told = subprocess.run(command, capture_output=True, text=True, timeout=600)
    found = [dict[int, frozenset[Need]]() for _ in seen]
    for sample in _SAMPLE.finditer(told.stdout + told.stderr):
        labels = dict(_LABEL.findall(sample[1]))
        need = labels["alertname"].removeprefix(_PREFIX), labels.get("topic", "")
        at, history = int(labels["at"]), found[int(labels["history"])]
        history[at] = history.get(at, frozenset()) | {need}
    assert re.search("FAILED:|SUCCESS", told.stdout + told.stderr), told.stdout + told.stderr  # failed is what fires
    return found


def _rules(conditions: Mapping[str, str]) -> dict[str, object]:
    holds = {alert.name: alert.holds for alert in REPLICATOR_ALERTS}
    rules = [
        {"alert": f"{_PREFIX}{name}", "expr": condition, "for": holds[f"{_PREFIX}{name}"]}
        for name, condition in conditions.items()
    ]
    return {"groups": [{"name": "replicator", "rules": rules}]}


def _scenario(number: int, series: Series) -> dict[str, object]:
    asked = [
        {"expr": _labelled(_FIRING, history=number, at=at), "eval_time": f"{at * EVERY}s", "exp_samples": []}
        for at in range(0, series.scrapes, _ASKED_EVERY)
    ]
    values = [{"series": name, "values": series.values(name)} for name in series.samples]
    return {"interval": f"{EVERY}s", "input_series": values, "promql_expr_test": asked}


def _labelled(expression: str, **labels: int) -> str:
    for name, value in labels.items():
        expression = f'label_replace({expression}, "{name}", "{value}", "", "")'
    return expression


def due(seen: Seen, at: int) -> frozenset[Need]:
    """The needs that have held for long enough at a scrape that their alerts fire."""
    return frozenset(
        need
        for need in seen.certain[at]
        if at >= (since := _SOON_SCRAPES[need[0]]) and all(need in needs for needs in seen.certain[at - since : at])
    )


def faults(seen: Seen, fires: Mapping[int, frozenset[Need]]) -> Iterator[str]:
    """The needs that no alert tells in time, and the alerts without a need."""
    for at in range(0, seen.series.scrapes, _ASKED_EVERY):
        told, when = fires.get(at, frozenset()), f"{seen.name}, {at * EVERY / 60:g} min"
        yield from (f"{when}: silent: {' '.join(need)}" for need in due(seen, at) - told)
        lately = frozenset[Need]().union(*seen.arguable[max(0, at - _scrapes(_LINGERS)) : at + 1])
        yield from (f"{when}: false: {' '.join(need)}" for need in told - lately)


def _seconds(written: str) -> int:
    return int(written[:-1]) * _SECONDS[written[-1]]


def _scrapes(seconds: int) -> int:
    return -(-seconds // EVERY)


_SOON_SCRAPES = {
    alert.name.removeprefix(_PREFIX): _scrapes(_seconds(alert.holds) + _SOON) for alert in REPLICATOR_ALERTS
}
