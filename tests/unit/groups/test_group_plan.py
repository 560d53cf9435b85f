"""The plan of a group, as a table of situations."""

from dataclasses import replace

import pytest

from appliance.groups.model.group_plan import (
    GroupPlan,
    GroupState,
    PartitionPlan,
    Places,
    checkpoints,
    not_synced,
    plan,
)
from appliance.kafka.client.group_offsets import Commit, Commits
from appliance.kafka.client.groups import Group
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.mirror_records import MirrorCheckpoint
from appliance.link.model.translation import Translation, TranslationState

UPSTREAM = Commit(50, "note", 3)
SOURCE, COPY = Partition("orders", 0), Partition("orders.copy", 0)
EXACT = Translation(70, TranslationState.EXACT)
AHEAD = Translation(90, TranslationState.AHEAD, 12)
AHEAD_OF_NOTHING = Translation(None, TranslationState.AHEAD, 12)
UNKNOWN = Translation(None, TranslationState.UNKNOWN)


def planned(
    translation: Translation = EXACT,
    committed: Commit | None = None,
    *,
    here: str = "Empty",
    there: str | None = "Empty",
    kinds: tuple[str, str] = ("classic", "classic"),
    upstream: Commit = UPSTREAM,
) -> GroupPlan:
    destination = None if there is None else Group("g", 1, there, kinds[1])
    held: Commits = {} if committed is None else {COPY: committed}
    source = Group("g", 0, here, kinds[0])
    return plan(source, {SOURCE: upstream}, destination, held, "{}.copy".format, lambda *_: translation)


@pytest.mark.parametrize(
    ("translation", "committed", "due", "lag", "state"),
    [
        (EXACT, None, Commit(70, "note"), None, GroupState.BEHIND),
        (EXACT, Commit(60, "note"), Commit(70, "note"), 10, GroupState.BEHIND),
        (EXACT, Commit(70, "note"), None, 0, GroupState.SYNCED),
        (EXACT, Commit(70, "older"), Commit(70, "note"), 0, GroupState.SYNCED),
        (EXACT, Commit(80, "note"), None, 0, GroupState.FURTHER),
        (EXACT, Commit(80, "", 0), None, 0, GroupState.THERE),
        (EXACT, Commit(60, "", 0), None, 10, GroupState.BOTH),
        (EXACT, Commit(70, "other", 5), None, 0, GroupState.SYNCED),
        (AHEAD, None, Commit(90, "note"), None, GroupState.BEHIND),
        (AHEAD, Commit(80, "note"), Commit(90, "note"), 22, GroupState.BEHIND),
        (AHEAD, Commit(90, "note"), None, 12, GroupState.BEHIND),
        (AHEAD_OF_NOTHING, None, None, None, GroupState.BEHIND),
        (AHEAD_OF_NOTHING, Commit(90, "note"), None, None, GroupState.BEHIND),
        (UNKNOWN, None, None, None, GroupState.UNKNOWN),
        (UNKNOWN, Commit(60, "note"), None, None, GroupState.UNKNOWN),
        (Translation(5, TranslationState.UNKNOWN), None, None, None, GroupState.UNKNOWN),
    ],
    ids=[
        "nothing is committed at the destination",
        "the destination is behind",
        "it is where the source is",
        "only the metadata differ",
        "never backwards",
        "a consumer there went further",
        "a consumer there is not pushed past what it has read",
        "a consumer there has come to the same place",
        "the copy has not come as far: its end",
        "its end has moved",
        "its end is committed already",
        "the copy does not tell its end",
        "the copy does not tell its end and is committed to",
        "unknown is never committed",
        "unknown is no lag of 0",
        "an offset that is said to be unknown is not used",
    ],
)
def test_a_partition_gets_the_commit_that_is_due_and_says_how_far_it_is(
    translation: Translation, committed: Commit | None, due: Commit | None, lag: int | None, state: GroupState
) -> None:
    found = planned(translation, committed)
    assert found.commits == ({} if due is None else {COPY: due})
    assert (found.lag, found.state) == (lag, state)


@pytest.mark.parametrize(
    ("here", "there", "state"),
    [
        ("Empty", "Stable", GroupState.THERE),
        ("Stable", "Stable", GroupState.BOTH),
        ("Stable", "PreparingRebalance", GroupState.BOTH),
        ("Empty", "Assigning", GroupState.THERE),
    ],
)
def test_nothing_is_committed_while_the_group_has_a_member_at_the_destination(
    here: str, there: str, state: GroupState
) -> None:
    found = planned(EXACT, Commit(60), here=here, there=there)
    assert (found.commits, found.state, found.lag) == ({}, state, 10)


@pytest.mark.parametrize("there", ["Empty", "Dead", None])
def test_a_group_without_members_at_the_destination_follows_whoever_consumes_at_the_source(there: str | None) -> None:
    assert planned(here="Stable", there=there).commits == {COPY: Commit(70, "note")}


def test_our_commit_carries_no_leader_epoch_so_that_a_consumers_own_can_be_told_from_it() -> None:
    assert planned().commits[COPY].leader_epoch == -1


@pytest.mark.parametrize("kinds", [("share", "consumer"), ("classic", "share")])
def test_a_group_of_another_kind_at_the_destination_is_refused_by_name(kinds: tuple[str, str]) -> None:
    found = planned(kinds=kinds)
    assert (found.commits, found.state) == ({}, GroupState.REFUSED)
    assert kinds[1] in found.refused


def test_a_group_that_changes_between_the_protocols_of_consumers_is_one_group() -> None:
    assert planned(kinds=("consumer", "classic")).commits == {COPY: Commit(70, "note")}


def test_once_the_commits_are_made_the_group_is_synced_and_nothing_is_due() -> None:
    done = planned(EXACT, Commit(60)).done()
    assert (done.state, done.lag, done.commits) == (GroupState.SYNCED, 0, {})


def test_a_commit_that_the_copy_had_not_come_to_moves_on_when_the_copy_has() -> None:
    """An idle group makes no new commit at the source; only its translation changes."""
    before = planned(AHEAD).done()
    assert (before.state, before.lag) == (GroupState.BEHIND, 12)
    after = planned(Translation(103, TranslationState.EXACT), before.partitions[0].committed)
    assert after.commits == {COPY: Commit(103, "note")}


def test_of_several_partitions_one_that_is_unknown_makes_the_groups_lag_unknown_and_keeps_no_other() -> None:
    translations = {Partition("orders", 0): EXACT, Partition("orders", 1): UNKNOWN, Partition("orders", 2): AHEAD}
    upstream: dict[Partition, Commit] = {partition: Commit(50) for partition in translations}
    found = plan(Group("g", 0), upstream, None, {}, "{}.copy".format, lambda p, _: translations[p])
    assert found.commits == {Partition("orders.copy", 0): Commit(70), Partition("orders.copy", 2): Commit(90)}
    assert (found.lag, found.state) == (None, GroupState.UNKNOWN)
    known = replace(found.done(), partitions=found.done().partitions[::2])
    assert (known.lag, known.state) == (12, GroupState.BEHIND)


FIRST, SECOND = "replicator-first", "replicator-second"


def place(offset: int, upstream: int = 50, before: str = "", goal: int | None = None) -> MirrorCheckpoint:
    """A link's place, remembered with the commit that its sync was about to make, and the one before."""
    return MirrorCheckpoint("g", COPY, upstream, offset, f"{offset if goal is None else goal} {before}".strip())


def of_two(translation: Translation, committed: Commit | None, **places: MirrorCheckpoint) -> GroupPlan:
    """The plan of the first of two links that write one copy."""
    remembered: Places = {f"replicator-{link}": each for link, each in places.items()}
    held = {} if committed is None else {COPY: committed}
    copies = "{}.copy".format, lambda *_: translation, lambda _: remembered
    return plan(Group("g", 0), {SOURCE: UPSTREAM}, Group("g", 1), held, *copies, FIRST)


def test_case_722_of_two_links_that_write_a_copy_the_lowest_place_counts() -> None:
    # The highest won: 750 records were passed, and the lag was 0.
    found = of_two(Translation(900, TranslationState.EXACT), Commit(900, "note"), first=place(900), second=place(150))
    assert found.commits == {COPY: Commit(150, "note")}
    assert (found.state, found.lag) == (GroupState.BEHIND, None)
    done = found.done()
    assert (done.state, done.lag, done.commits) == (GroupState.BEHIND, 750, {})
    assert done.reason == f"{SECOND} knows unread records from offset 150 of orders.copy-0 on"
    assert not_synced([done]) == {"g": f"behind: {done.reason}"}


def test_a_place_is_remembered_before_it_is_committed_with_the_commit_that_it_replaces() -> None:
    found = of_two(EXACT, Commit(60, "note"), first=place(60, 40))
    assert found.news == [place(70, before="60")]
    assert of_two(EXACT, Commit(60), first=place(70, before="60")).commits == {COPY: Commit(70, "note")}
    assert of_two(EXACT, Commit(70), first=place(70)).news == []


def test_killed_between_the_place_and_the_commit_a_lower_place_of_another_link_still_holds_the_group_back() -> None:
    killed = of_two(EXACT, Commit(65), first=place(70, before="65"), second=place(30))
    assert killed.commits == {COPY: Commit(30, "note")}


def test_case_812_a_link_that_syncs_no_more_holds_no_group_and_its_commit_is_set_back() -> None:
    # After rm-topic nobody knew its commit: the group stayed past what the other link's source had not read.
    withdrawn = MirrorCheckpoint("g", COPY, -1, -1, "98")
    found = of_two(EXACT, Commit(98), second=withdrawn)
    assert found.news == [place(70, before="98")]
    assert found.commits == {COPY: Commit(70, "note")}
    assert of_two(EXACT, Commit(40), second=withdrawn).commits == {COPY: Commit(70, "note")}


def test_case_723_a_group_goes_back_past_what_the_copy_has_lost() -> None:
    # "Never backwards" held it at its old offset: 81 records that were copied again were skipped.
    after_a_cut = Translation(52, TranslationState.EXACT)
    found = of_two(after_a_cut, Commit(133, "note"), first=place(133))
    assert found.commits == {COPY: Commit(52, "note")}
    assert found.state is GroupState.BEHIND


def test_a_group_that_was_reset_at_the_source_stays_where_it_is() -> None:
    found = of_two(EXACT, Commit(90, "note"), first=place(90, 65))
    assert (found.commits, found.news, found.state) == ({}, [], GroupState.FURTHER)


@pytest.mark.parametrize("own", [Commit(80, "note"), Commit(80, "", 3)])
def test_a_commit_that_no_link_remembers_is_not_set_back(own: Commit) -> None:
    assert of_two(EXACT, own, first=place(60), second=place(10)).commits == {}


def test_a_place_below_the_start_of_the_copys_log_counts_as_its_start() -> None:
    found = of_two(EXACT.within(40), None, second=place(10))
    assert found.commits == {COPY: Commit(40, "note")}


def test_case_724_every_group_that_is_not_synced_is_named_with_its_state() -> None:
    # Those without a lag passed in silence, though they were further, or consumed, at the destination.
    plans = planned(EXACT, Commit(80)), planned(EXACT, Commit(80, "", 0)), planned(EXACT, Commit(70, "note"))
    states = [state for each in plans for state in not_synced([each]).values()]
    assert states == ["further at the destination", "consumed at the destination"]


def test_other_writers_records_move_no_place_of_a_group_that_another_link_holds_back() -> None:
    lowest = of_two(Translation(10, TranslationState.EXACT), Commit(10), first=place(10), second=place(17, goal=10))
    assert lowest.news == []
    idle = of_two(Translation(95, TranslationState.EXACT), Commit(40), first=place(70, goal=40), second=place(40))
    assert idle.news == []
    freed = of_two(Translation(95, TranslationState.EXACT), Commit(40), first=place(70, goal=40), second=place(80))
    assert freed.news == [place(95, before="40", goal=80)]


def test_case_810_two_links_that_remember_the_same_place_do_not_hold_a_group_there_for_ever() -> None:
    # Each kept the place that it remembered, since the other's was no lower.
    found = of_two(Translation(16, TranslationState.EXACT), Commit(7, "note"), first=place(7), second=place(7))
    assert found.news == [place(16, before="7", goal=7)]


def test_case_780_a_consumers_own_commit_at_the_end_of_a_shared_copy_is_not_set_back() -> None:
    # The other link's place is the copy's end as well, and no sync has ever committed it: 300 records are read again.
    second = place(1000, goal=700)
    share_group = of_two(Translation(700, TranslationState.EXACT), Commit(1000), first=place(700), second=second)
    assert share_group.commits == {}


def of_translations(*translations: Translation) -> GroupPlan:
    """A group with offset 50 in source partitions that have these translations."""
    partitions = (
        PartitionPlan(Partition("orders", n), Partition("orange.orders", n), Commit(50, "note", 3), translation)
        for n, translation in enumerate(translations)
    )
    return GroupPlan("billing", "classic", tuple(partitions))


@pytest.mark.parametrize(
    ("translation", "offsets"),
    [
        (Translation(70, TranslationState.EXACT), (50, 70)),
        (Translation(65, TranslationState.AHEAD, 12), (38, 65)),  # at the copy's end both offsets are exact
    ],
)
def test_an_offset_that_is_known_becomes_a_checkpoint(translation: Translation, offsets: tuple[int, int]) -> None:
    assert list(checkpoints([of_translations(translation)])) == [
        MirrorCheckpoint("billing", Partition("orange.orders", 0), *offsets, "note")
    ]


@pytest.mark.parametrize(
    "translation",
    [
        Translation(None, TranslationState.UNKNOWN),
        Translation(0, TranslationState.UNKNOWN),
        Translation(None, TranslationState.AHEAD, 12),
    ],
)
def test_of_an_offset_that_is_not_known_there_is_no_checkpoint(translation: Translation) -> None:
    assert list(checkpoints([of_translations(translation)])) == []


def test_every_partition_of_every_group_has_its_own_whatever_keeps_the_group_from_a_commit() -> None:
    exact = Translation(70, TranslationState.EXACT)
    both = [
        of_translations(exact, exact),
        GroupPlan("b", "classic", of_translations(exact).partitions, there=True, refused="not permitted"),
    ]
    found = [(each.group, each.copy[1]) for each in checkpoints(both)]
    assert found == [("billing", 0), ("billing", 1), ("b", 0)]
