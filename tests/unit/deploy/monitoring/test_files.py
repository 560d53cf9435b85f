"""The committed files of monitoring/, compared with the list of metrics, with their generator and with the docs."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from appliance.groups.model.group_plan import GroupState
from appliance.link.model.copy_states import CopyState
from appliance.metrics import METRICS
from appliance.status.model.snapshot import LinkState
from deploy.monitoring.__main__ import FILES, FOLDER
from deploy.monitoring.alerts import ALERTS, ORDER_JOB, REPLICATOR_JOB, TUNNEL_JOB, Alert
from deploy.monitoring.panels import ROWS, Panel, PanelType
from deploy.monitoring.promql import TARGET_LABELS, faults, metrics
from deploy.render.vm import CONSOLE_PORT, STATUS_PORT

PANELS = [panel for panels in ROWS.values() for panel in panels]
LABELS_SHOWN = r"\$labels\.(\w+)"


def dashboard() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    return read


def expressions(dashboard: dict[str, Any]) -> Iterator[str]:
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))
    yield from (variable["definition"] for variable in dashboard["templating"]["list"] if "definition" in variable)


@pytest.mark.parametrize("name", FILES)
def test_a_committed_file_is_what_python_m_deploy_monitoring_writes(name: str) -> None:
    assert (FOLDER / name).read_text() == FILES[name]()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_uses_metrics_and_labels_that_exist_and_names_a_remedy(alert: Alert) -> None:
    assert faults(alert.condition, re.findall(LABELS_SHOWN, alert.summary + alert.description)) == []
    assert "$labels.link" in alert.summary or alert.condition.startswith("absent(")
    assert alert.description


NEEDS_A_PERSON: dict[str, list[str]] = {
    "kafka_replicator_link_state": [state for state in LinkState if not state.well and state is not LinkState.UNKNOWN],
    "kafka_replicator_topic_state": [
        state for state in CopyState if state.is_unfinished and state is not CopyState.DELETED
    ],
    "kafka_replicator_groups": [GroupState.REFUSED, GroupState.UNKNOWN],
}
"""The states by metric; of an unknown link, the parts that are unknown have alerts of their own."""


@pytest.mark.parametrize(("metric", "state"), [(m, state) for m, states in NEEDS_A_PERSON.items() for state in states])
def test_case_877_each_state_that_needs_a_person_has_an_alert(metric: str, state: str) -> None:
    # Killed commands, dead letters, refused groups and unknown partitions had no alert.
    selected = [re.findall(metric + r'\{state=~?"([^"]*)"\}', alert.condition) for alert in ALERTS]
    assert any(re.fullmatch(pattern, state) for patterns in selected for pattern in patterns)


def test_each_unknown_part_of_a_link_has_an_alert() -> None:
    conditions = {alert.condition for alert in ALERTS}
    for part in ("source_reachable == 0", "destination_reachable == 0", "unknown) > 0"):
        assert any(part in condition for condition in conditions)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_a_panel_uses_metrics_and_labels_that_exist(panel: Panel) -> None:
    for expression, legend in panel.queries.items():
        assert faults(expression, re.findall(r"{{(\w+)}}", legend)) == []
        assert legend or panel.type is PanelType.TABLE


def test_the_dashboard_shows_every_metric() -> None:
    assert {name for expression in expressions(dashboard()) for name in metrics(expression)} == set(METRICS)


def test_every_expression_of_the_dashboard_follows_the_chosen_link_and_instance() -> None:
    targets = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", [])]
    assert [expression for expression in expressions(dashboard()) if faults(expression)] == []
    for expression in targets:
        assert expression.count('link=~"$link", instance=~"$instance"') == len(re.findall(r"kafka_\w+", expression))


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def test_the_scrape_configuration_has_the_jobs_of_the_alerts_and_the_label_of_the_link() -> None:
    jobs = {job["job_name"]: job for job in yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]}
    ports = {REPLICATOR_JOB: CONSOLE_PORT, TUNNEL_JOB: STATUS_PORT, ORDER_JOB: CONSOLE_PORT}
    assert jobs.keys() == ports.keys()
    for name, job in jobs.items():
        for target in job["static_configs"]:
            assert target["labels"].keys() == TARGET_LABELS - {"job", "instance"}
            assert {address.rpartition(":")[2] for address in target["targets"]} == {str(ports[name])}
