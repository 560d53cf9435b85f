"""Groups as the status shows them: JSON, metrics, table, sentences."""

from dataclasses import replace

from rich.console import Console

from appliance.groups.model.group_plan import GroupPlan
from appliance.link.model.problems import Fault
from appliance.status.model.document import document
from appliance.status.model.messages import remarks
from appliance.status.model.metrics import exposition
from appliance.status.model.snapshot import Snapshot
from appliance.status.model.table import rendered
from tests.support.facts import NOW, group, snapshot

SYNCED, BEHIND, UNKNOWN = group("synced", 70), group("behind", 60), group("unknown", 60, None)


def with_groups(*groups: GroupPlan, unknown: Fault | None = None) -> Snapshot:
    return replace(snapshot(), groups=groups, groups_unknown=unknown)


def metrics(shown: Snapshot) -> list[str]:
    lines = exposition(shown, fresh=True).decode().splitlines()
    return [line.removeprefix("kafka_replicator_") for line in lines if line.startswith("kafka_replicator_group")]


def printed(shown: Snapshot) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(rendered(shown))
    return capture.get()


def test_each_group_is_there_as_json_with_its_offsets_on_both_sides() -> None:
    shown = document(with_groups(BEHIND))
    assert shown["groups_unknown"] is None
    assert shown["groups"] == [
        {
            "group": "behind",
            "kind": "classic",
            "state": "behind",
            "lag": 10,
            "refused": None,
            "partitions": [
                {
                    "topic": "payments",
                    "partition": 0,
                    "source_offset": 50,
                    "translated": 70,
                    "destination_offset": 60,
                    "lag": 10,
                    "state": "behind",
                    "reason": None,
                }
            ],
        }
    ]


def test_a_lag_that_is_not_known_is_null_and_has_no_sample() -> None:
    shown = with_groups(SYNCED, BEHIND, UNKNOWN)
    assert [each["lag"] for each in document(shown)["groups"]] == [0, 10, None]  # type: ignore[attr-defined]
    assert [line for line in metrics(shown) if line.startswith("group_lag_offsets")] == [
        'group_lag_offsets{group="synced"} 0.0',
        'group_lag_offsets{group="behind"} 10.0',
    ]
    assert 'groups{state="unknown"} 1.0' in metrics(shown)
    assert 'groups{state="refused"} 0.0' in metrics(shown)


def test_case_902_groups_that_nobody_can_see_are_unknown_in_the_metrics() -> None:
    # There was no sample at all, so that no alert could ever fire where the right to list groups was missing.
    for groups, count in (((), 1), ((SYNCED, BEHIND), 2)):
        assert metrics(with_groups(*groups, unknown=Fault("CLUSTER_AUTHORIZATION_FAILED", NOW))) == [
            f'groups{{state="unknown"}} {count}.0'
        ]
    assert metrics(with_groups()) == []


def test_a_group_seen_before_a_cluster_fell_silent_has_no_lag_now() -> None:
    shown = with_groups(SYNCED, unknown=Fault("the source does not answer", NOW))
    (seen,) = document(shown)["groups"]  # type: ignore[misc]
    assert (seen["state"], seen["lag"], seen["partitions"][0]["lag"]) == ("synced", None, None)
    assert metrics(shown) == ['groups{state="unknown"} 1.0']
    assert any("the source does not answer" in line for line in remarks(shown))


def test_the_table_counts_the_groups_and_lists_those_that_are_not_synced() -> None:
    shown = printed(with_groups(SYNCED, BEHIND, UNKNOWN))
    assert "\n3 groups: 1 synced, 1 behind, 1 unknown\n" in shown
    listed = [line for line in shown.splitlines() if "classic" in line]
    assert ["behind" in listed[0], "unknown" in listed[1], len(listed)] == [True, True, 2]
    assert "groups" not in printed(snapshot())


def test_groups_that_an_operator_should_know_of_are_told_by_name_up_to_five() -> None:
    both = [group(f"g{number}", 60, there=True, here=True) for number in range(7)]
    refused = group("mine", None, refused="commit payments-0: GROUP_AUTHORIZATION_FAILED")
    told = remarks(with_groups(*both, refused, UNKNOWN, SYNCED))
    assert any(line.startswith("groups g0, g1, g2, g3, g4 and 2 more: consumed on both sides") for line in told)
    assert any(line.startswith("group mine: ") and "GROUP_AUTHORIZATION_FAILED" in line for line in told)
    assert any(line.startswith("group unknown: ") for line in told)
    assert not any("synced" in line for line in told)
    assert with_groups(*both).state.well


def test_one_topic_has_the_groups_that_consumed_it() -> None:
    assert with_groups(SYNCED).only(["payments"]).groups == (SYNCED,)
    assert with_groups(SYNCED).only(["orders"]).groups == ()
