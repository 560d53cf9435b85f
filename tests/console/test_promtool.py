"""The files of monitoring/ and the exposition of metrics, judged by Prometheus's own promtool."""

import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from appliance.gateway.model.metrics import DestinationCollector
from appliance.gateway.model.metrics import exposition as tunnel_exposition
from appliance.order.model.metrics import OrderCollector
from appliance.order.model.metrics import exposition as order_exposition
from appliance.settings.values import Side
from appliance.status.model.metrics import exposition
from appliance.tunnel.limits.counters import Counters
from deploy.monitoring.__main__ import FOLDER
from deploy.monitoring.alerts import ALERTS, TOPIC
from tests.console.alert_cases import CASES, ORDER, REPLICATOR, TUNNEL, Case
from tests.support.exposition import NUMBERS, WELL_NUMBERS, source_vms, tunnel_collector
from tests.support.facts import complete, snapshot
from tests.support.order_facts import order_view

RULES = FOLDER / "prometheus-rules.yml"
DESCRIPTIONS = {alert.name: alert.description for alert in ALERTS}
RUNBOOKS = {alert.name: alert.runbook for alert in ALERTS}
NEVER, ALWAYS = "vector(0) > 0", "up or vector(1)"
UNITS_THAT_STAY = {
    "kafka_replicator_heartbeat_milliseconds",
    "kafka_tunnel_certificate_days_left",
    "kafka_tunnel_peer_certificate_days_left",
}
"""Published names never change, whatever promtool thinks of their units."""

Json = dict[str, object]


def promtool(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *arguments], input=stdin, capture_output=True, text=True, timeout=60)


def labels(text: str) -> dict[str, str]:
    return dict(re.findall(r'(\w+)="(.*?)"', text))


def scenario(case: Case) -> Json:
    """The case as promtool reads it."""
    target = labels(case.target)
    own = {"job": target["job"]} if case.alert.endswith("NotScraped") else target
    fired = {
        "exp_labels": {"severity": severity(case.alert), **own, **case.labels},
        "exp_annotations": {
            "summary": case.summary,
            "description": description(case),
            "runbook": RUNBOOKS[case.alert],
        },
    }
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "alert_rule_test": [
            {"alertname": case.alert, "eval_time": f"{case.quiet}m", "exp_alerts": []},
            {"alertname": case.alert, "eval_time": f"{case.firing}m", "exp_alerts": [fired]},
        ],
    }


def description(case: Case) -> str:
    """The description with the values of the case; a topic within a command is cut to what a topic may be named."""
    words = DESCRIPTIONS[case.alert].replace(TOPIC, re.sub("[^a-zA-Z0-9._-]", "_", case.labels.get("topic", "")))
    return re.sub(r"{{ \$labels\.(\w+) }}", lambda label: case.labels[label[1]], words)


def severity(alert: str) -> str:
    return next(each.severity.value for each in ALERTS if each.name == alert)


def judged(directory: Path, scenarios: Iterable[Json], rules: Path = RULES) -> subprocess.CompletedProcess[str]:
    """The answer of ``promtool test rules``."""
    file = directory / "cases.yml"
    tests = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": list(scenarios)}
    file.write_text(yaml.safe_dump(tests))
    return promtool("test", "rules", file)


def changed(directory: Path, alert: str, condition: str) -> Path:
    """The rule of one alert alone, with another condition: promtool evaluates each rule of a file at each minute."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    rule = next(rule for group in groups for rule in group["rules"] if rule["alert"] == alert)
    file = directory / "changed.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "changed", "rules": [{**rule, "expr": condition}]}]}))
    return file


def test_every_alert_has_a_case() -> None:
    assert list(dict.fromkeys(case.alert for case in CASES)) == [alert.name for alert in ALERTS]


def test_the_rules_and_the_scrape_configuration_are_valid() -> None:
    rules = promtool("check", "rules", RULES)
    assert rules.returncode == 0, rules.stderr
    assert f"{len(ALERTS)} rules found" in rules.stdout
    configuration = promtool("check", "config", FOLDER / "prometheus.yml")
    assert configuration.returncode == 0, configuration.stderr
    assert "1 rule files found" in configuration.stdout


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_an_alert_fires_when_it_should_with_its_text_and_not_before(tmp_path: Path, case: Case) -> None:
    answer = judged(tmp_path, [scenario(case)])
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
@pytest.mark.parametrize("condition", [NEVER, ALWAYS], ids=["never", "always"])
def test_a_case_finds_an_alert_that_fires_never_or_always(tmp_path: Path, case: Case, condition: str) -> None:
    answer = judged(tmp_path, [scenario(case)], changed(tmp_path, case.alert, condition))
    assert answer.returncode != 0
    assert case.alert in answer.stdout + answer.stderr


def series(page: bytes, target: str) -> dict[str, str]:
    """The samples of a page with the labels of its target, unchanged for two days."""
    samples = (sample for family in text_string_to_metric_families(page.decode()) for sample in family.samples)
    return {f"{sample.name}{{{selector(sample.labels)}{target}}}": f"{sample.value}x2900" for sample in samples}


def selector(labels: Mapping[str, str]) -> str:
    return "".join(f'{name}="{value}",' for name, value in labels.items())


def test_a_link_that_is_well_fires_no_alert(tmp_path: Path) -> None:
    ends = (
        tunnel_collector(Counters(servers=source_vms()), Side.DESTINATION, previous_secret=False),
        DestinationCollector(WELL_NUMBERS),
    )
    all_series = {
        **{f"up{{{target}}}": "1x2900" for target in (REPLICATOR, TUNNEL, ORDER)},
        **series(exposition(snapshot(), fresh=True), REPLICATOR),
        **series(tunnel_exposition(*ends), TUNNEL),
        **series(order_exposition(OrderCollector(order_view(), {0: False}, fresh=True)), ORDER),
    }
    quiet = [{"alertname": alert.name, "eval_time": "2880m", "exp_alerts": []} for alert in ALERTS]
    values = [{"series": name, "values": values} for name, values in all_series.items()]
    answer = judged(tmp_path, [{"interval": "1m", "input_series": values, "alert_rule_test": quiet}])
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize(
    "page",
    [
        lambda: exposition(complete(), fresh=True),
        lambda: exposition(replace(complete(), topics=()), fresh=True),
        lambda: tunnel_exposition(tunnel_collector(Counters(servers=source_vms())), DestinationCollector(NUMBERS)),
        lambda: order_exposition(OrderCollector(order_view(), {0: False}, fresh=True)),
    ],
    ids=["replicator", "replicator without topics", "tunnel", "order"],
)
def test_the_metrics_pages_have_no_fault_but_the_units_of_three_names(page: Callable[[], bytes]) -> None:
    answer = promtool("check", "metrics", stdin=page().decode())
    found = {line.split()[0] for line in (answer.stdout + answer.stderr).splitlines() if line.strip()}
    assert found <= UNITS_THAT_STAY, answer.stderr
