from dataclasses import replace

import pytest

from appliance.console.model import connect
from appliance.link.model.checkpoint import Owner
from appliance.link.model.copy_states import LINK, CopyState, StateRecord
from appliance.link.model.problems import PERSISTS_MS, Fault
from appliance.status.model.facts import DestinationFacts, SourceFacts
from appliance.status.model.running import Running, with_running
from appliance.status.model.snapshot import Snapshot
from tests.support.facts import DESTINATION, ENDS_AT_100, NOW, SILENT, metadata, snapshot, with_position
from tests.support.settings import REQUIRED

NAME = "replicator-orange"


def in_state(state: CopyState, topic: str = LINK) -> DestinationFacts:
    return replace(DESTINATION, states={topic: StateRecord(topic, state, NOW, "ann")})


@pytest.mark.parametrize(
    ("taken", "state"),
    [
        (None, "UNASSIGNED"),
        (snapshot(), "RUNNING"),
        (snapshot(SILENT), "UNASSIGNED"),
        (snapshot(destination=SILENT), "UNASSIGNED"),
        (snapshot(destination=DestinationFacts(metadata())), "UNASSIGNED"),
        (snapshot(destination=in_state(CopyState.PAUSED)), "PAUSED"),
        (snapshot(destination=in_state(CopyState.PAUSED, "payments")), "PAUSED"),
        (snapshot(destination=in_state(CopyState.PROMOTED)), "STOPPED"),
    ],
)
def test_the_connector_has_the_state_of_the_link(taken: object, state: str) -> None:
    found = connect.status(NAME, taken, "")  # type: ignore[arg-type]
    assert found["connector"]["state"] == state
    assert {task["state"] for task in found["tasks"]} <= {state}


def test_a_link_whose_replicator_does_not_answer_is_not_said_to_run() -> None:
    found = connect.status(NAME, snapshot(), "no replicator answers")
    assert (found["connector"]["state"], found["connector"]["trace"]) == ("UNASSIGNED", "no replicator answers")


def test_a_lane_with_a_stopped_partition_is_a_failed_task_with_the_reason_as_its_trace() -> None:
    taken = snapshot(destination=with_position(stopped="retention outran the copy", stopped_at=NOW))
    found = connect.status(NAME, taken, "")
    assert found["connector"]["state"] == "RUNNING"
    (failed,) = (task for task in found["tasks"] if task["state"] == "FAILED")
    assert failed["id"] == taken.topics[0].partitions[0].lane
    assert "payments-0: stopped since" in failed["trace"]
    assert "retention outran the copy" in failed["trace"]


def test_case_876_the_lanes_of_a_topic_that_cannot_be_copied_have_failed() -> None:
    # They were RUNNING.
    never = snapshot(destination=replace(DESTINATION, positions={}, copies={}))
    taken = with_running(never, Running({"topic payments": Fault("INVALID_REPLICATION_FACTOR", NOW)}))
    failed = [task for task in connect.status(NAME, taken, "")["tasks"] if task["state"] == "FAILED"]
    assert {task["id"] for task in failed} == {each.lane for each in taken.partitions}
    assert all("INVALID_REPLICATION_FACTOR" in task["trace"] for task in failed)


@pytest.mark.parametrize(
    ("taken", "trace"),
    [
        (with_running(snapshot(), Running({"discovery": Fault("no right", NOW - PERSISTS_MS)})), "discovery: failing"),
        (snapshot(SourceFacts(metadata())), "matches no topic"),
        (snapshot(SourceFacts(metadata(), {}, dict.fromkeys(ENDS_AT_100, "grant it Describe"))), "grant it Describe"),
    ],
)
def test_a_link_that_tries_in_vain_or_copies_nothing_or_does_not_know_is_not_said_to_run(
    taken: Snapshot, trace: str
) -> None:
    found = connect.status(NAME, taken, "")["connector"]
    assert (found["state"], trace in found["trace"]) == ("FAILED", True)


def test_the_config_shows_the_settings_without_a_secret() -> None:
    shown = connect.info(NAME, snapshot(), REQUIRED | {"CONSOLE_TOKEN": "token-of-ann"})["config"]
    assert (shown["name"], shown["SOURCE_CLUSTER_ID"], shown["tasks.max"]) == (NAME, "orange", "3")
    secrets = {text for name, text in REQUIRED.items() if "SECRET" in name} | {"token-of-ann"}
    assert not secrets & set(shown.values())
    assert shown["SHARED_SECRET"] == shown["CONSOLE_TOKEN"] == "********"


def test_the_topics_are_the_copies_and_the_offsets_the_positions() -> None:
    assert connect.topics(NAME, snapshot()) == {NAME: {"topics": ["payments.copy"]}}
    offsets = connect.offsets(snapshot())["offsets"]
    assert {"partition": {"topic": "payments", "partition": 1}, "offset": {"offset": 100}} in offsets


@pytest.mark.parametrize("destination", [DESTINATION, in_state(CopyState.PAUSED)])
def test_case_280_an_old_snapshot_is_not_said_to_be_the_present_state(destination: DestinationFacts) -> None:
    found = connect.status(NAME, snapshot(destination=destination), "", old=True)
    assert {found["connector"]["state"], *(task["state"] for task in found["tasks"])} == {"UNASSIGNED"}
    assert "unknown since" in found["connector"]["trace"]


def test_case_289_an_old_snapshot_of_a_silent_cluster_keeps_its_reason() -> None:
    found = connect.status(NAME, snapshot(SILENT, now=NOW), "", old=True)
    assert SILENT in found["connector"]["trace"]


def test_case_262_each_of_a_thousand_tasks_has_the_worker_that_owns_its_lane() -> None:
    # Each task looked through all lanes: a status of 1000 lanes took 121 ms of the only thread.
    one = snapshot().lanes[0]
    owner = Owner("run-1", "", "vm-1", NOW)
    lanes = tuple(replace(one, lane=lane, owner=owner if lane % 2 else None) for lane in range(1000))
    found = connect.status(NAME, replace(snapshot(), lanes=lanes), "")
    assert [task["worker_id"] for task in found["tasks"]] == ["", "vm-1:run-1"] * 500
    assert found["connector"]["worker_id"] == ""


def test_case_1002_the_settings_of_the_connector_show_no_secret_of_a_url_or_a_command() -> None:
    # They had the arguments of the command, the query of the endpoint and the keys of the audit table.
    given = {
        "SOURCE_OAUTH_TOKEN_COMMAND": "/opt/token --password Hidden1",
        "DESTINATION_OAUTH_TOKEN_COMMAND": " ",
        "DESTINATION_OAUTH_TOKEN_URL": "https://me:Hidden1@idp.example/token?key=Hidden2#Hidden3",
        "AUDIT_PATH": "s3a://AKIA:Hid/den1@bucket/folder",
        "CONSOLE_TOKEN": "Hidden1",
        "REPLICA_TOPICS_SOURCE_REGEX": "a?b#c",
    }
    shown = connect.config(NAME, given, 1)
    assert {name: shown[name] for name in given} == {
        "SOURCE_OAUTH_TOKEN_COMMAND": "/opt/token",
        "DESTINATION_OAUTH_TOKEN_COMMAND": "",
        "DESTINATION_OAUTH_TOKEN_URL": "https://idp.example/token",
        "AUDIT_PATH": "s3a://bucket/folder",
        "CONSOLE_TOKEN": "********",
        "REPLICA_TOPICS_SOURCE_REGEX": "a?b#c",
    }
