"""The doctor's table of rights is that of docs/run/operations.md, and a step checks each of its rows."""

from pathlib import Path

from appliance.doctor.destination_rights import RIGHTS, Destination
from appliance.doctor.destination_side import STEPS
from appliance.doctor.source_topics import SourceTopics
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.model.naming import REGISTRY, Naming
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from tests.support.settings import REQUIRED, write_settings
from tests.unit.test_docs import ROOT, plain, tables

BY_STATUS = "status"
"""In place of the step: only status needs that right, and names what it cannot see."""


def destination(directory: Path, **changed: str) -> Destination:
    settings = read_settings(write_settings(directory / "setenv.sh", REQUIRED | changed), Role.REPLICATOR, {})
    sources = SourceTopics(source_cluster(settings), Naming.of(settings))
    return Destination(settings, destination_cluster(settings), sources)


async def test_each_right_of_the_page_is_in_the_doctors_table_with_a_step_that_checks_it(tmp_path: Path) -> None:
    (rows,) = (
        table[1:]
        for table in tables(ROOT / "docs" / "run" / "operations.md")
        if table[0][:2] == ["cluster", "resource"]
    )
    assert len(rows) == len(RIGHTS)
    checked = {BY_STATUS, *(step.name for step in STEPS), *destination(tmp_path).topics()}
    for row, right in zip(rows, RIGHTS, strict=True):
        cluster, resource, operations = map(plain, row)
        assert cluster == right.cluster
        assert resource.startswith(right.resource)
        assert operations.startswith(right.operations)
        assert right.of in checked


async def test_topics_of_features_are_the_doctors_only_where_the_link_has_them(tmp_path: Path) -> None:
    plainly = destination(tmp_path).topics()
    assert [name for name in ("groups", "mirrors", "producers", "dead") if plainly[name]] == []
    assert plainly["registry"] == [REGISTRY]
    wanted = destination(tmp_path, REPLICA_GROUPS_REGEX=".*", MM2_FORMATS="yes").topics()
    assert wanted["groups"] == ["replicator-orange.groups.offsets"]
    assert "heartbeats" in wanted["mirrors"]
