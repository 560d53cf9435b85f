"""The chart's files that follow from the code are those that ``python -m deploy.helm`` writes."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from appliance.settings.role import Role
from deploy.helm.__main__ import CHART, FILES, SCHEMA
from deploy.helm.alerts import alerts_file
from deploy.helm.schema import schema_file
from deploy.helm.variables import ROLES, names_of
from deploy.monitoring.alerts import rules_file

CHECKOUT = Path(__file__).parents[4]


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_chart_is_as_the_code_writes_it(name: str) -> None:
    assert (CHART / name).read_text() == FILES[name]()


def test_the_schema_knows_every_variable() -> None:
    assert SCHEMA.read_text() == schema_file(SCHEMA.read_text())


def test_the_chart_has_the_version_of_the_code() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_alerts_differ_from_those_for_docker_in_the_commands_alone() -> None:
    ours, docker = (yaml.safe_load(text) for text in (alerts_file(), rules_file()))
    for group, original in zip(ours["groups"], docker["groups"], strict=True):
        for rule, other in zip(group["rules"], original["rules"], strict=True):
            description = rule["annotations"].pop("description")
            before = other["annotations"].pop("description")
            assert rule == other
            assert "docker" not in description
            assert description.count("`") == before.count("`")


def test_a_container_that_needs_no_secret_of_the_tunnel_has_none() -> None:
    for container in ("replicator", "control-center"):
        assert "SHARED_SECRET" not in names_of(ROLES[container])
    assert "DESTINATION_API_SECRET" not in names_of(ROLES["gateway"])
    assert "SOURCE_API_SECRET" not in names_of(ROLES["tunnel"])
    assert ROLES["doctor-source"] == Role.SOURCE


def test_the_values_are_those_of_the_schema() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    known = json.loads(SCHEMA.read_text())["properties"]
    assert values.keys() == known.keys() - {"global"}
    for name, value in values.items():
        if isinstance(value, dict) and "properties" in known[name]:
            assert value.keys() <= known[name]["properties"].keys()
