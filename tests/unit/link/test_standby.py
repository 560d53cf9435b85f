"""The choice of the replicator that copies, and what the members of a group say of themselves."""

import json
from dataclasses import replace

import pytest

from appliance.link.model.standby import (
    Assignment,
    Member,
    assign,
    decode_assignment,
    decode_member,
    encode,
    members_of,
)

A = Member("a1", "vm-a", 1_000, "vm-a-0", ready=True)
B = Member("b1", "vm-b", 2_000, "vm-b-0", ready=True)
FIRST = assign([A], 5_000)


def seen(member: Member, assignment: Assignment = FIRST) -> Member:
    return replace(member, seen=assignment)


def test_the_first_member_is_active_though_it_is_not_ready_yet() -> None:
    assert assign([replace(A, ready=False)], 5_000) == Assignment(
        1, "a1", "vm-a", "vm-a-0", 5_000, "", "the first one", ("a1",)
    )


def test_the_active_member_stays_active_whoever_comes() -> None:
    older = replace(B, since=1)
    assert assign([older, seen(A)], 9_000) == replace(FIRST, members=("a1", "b1"))


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([seen(B)], "vm-a is gone, or silent"),
        ([seen(replace(A, leaving=True)), B], "vm-a was stopped"),
        ([seen(B), replace(A, run="a2", ready=False)], "vm-a has started again"),
        ([seen(replace(A, ready=False)), B], "vm-a is not ready"),
    ],
)
def test_a_ready_member_follows_one_that_is_gone_leaves_or_begins_again(members: list[Member], reason: str) -> None:
    following = assign(members, 9_000)
    assert (following.active, following.before, following.reason) == ("b1", "vm-a", reason)
    assert (following.number, following.since) == (2, 9_000)


def test_a_member_that_wakes_up_with_an_old_assignment_does_not_take_the_place_back() -> None:
    second = assign([seen(B)], 9_000)
    assert assign([seen(A), seen(B, second)], 12_000).active == "b1"


def test_hand_overs_follow_each_other_whatever_the_clocks_of_the_hosts_say() -> None:
    second = assign([seen(B)], -7_200_000)
    assert second.since == FIRST.since + 1
    assert assign([seen(A), seen(B, second)], 12_000).active == "b1"


def test_one_that_begins_again_is_active_once_it_is_ready() -> None:
    again = seen(replace(A, run="a2", ready=False))
    assert assign([again], 9_000) == replace(FIRST, members=("a2",))
    assert assign([replace(again, ready=True)], 9_000).active == "a2"


def test_a_member_that_is_ready_no_longer_stays_active_while_nobody_else_is_ready() -> None:
    assert assign([seen(replace(A, ready=False)), replace(B, ready=False)], 9_000).active == "a1"


def test_a_member_that_leaves_and_has_no_standby_stays_active_to_its_end() -> None:
    assert assign([seen(replace(A, leaving=True))], 9_000).active == "a1"


def test_of_several_standbys_the_one_that_waits_for_the_longest_time_follows() -> None:
    third = Member("c1", "vm-c", 1_500, "vm-c-0", ready=True)
    assert assign([seen(B), third], 9_000).active == "c1"
    assert assign([seen(B), replace(third, ready=False)], 9_000).active == "b1"


def test_what_a_member_says_comes_back_and_words_of_a_newer_release_are_left_out() -> None:
    member = seen(replace(A, changes=3))
    assert decode_member(encode(member)) == member
    newer = json.loads(encode(member)) | {"colour": "green"}
    newer["seen"] |= {"size": 5}
    assert decode_member(json.dumps(newer).encode()) == member
    assert decode_assignment(encode(FIRST)) == FIRST


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"\x00\x01",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b'{"run":1,"host":"a","since":1}',
        b'{"run":"a","host":"a","since":"now"}',
        b'{"run":"a","host":"a","since":1,"seen":5}',
    ],
)
def test_words_of_another_program_are_nobodys(words: bytes) -> None:
    assert decode_member(words) is None
    assert members_of([(words, words)]).active is None


def test_the_members_of_a_group_are_shown_with_the_newest_assignment() -> None:
    second = assign([seen(B)], 9_000)
    shown = members_of([(encode(B), encode(second)), (encode(A), encode(FIRST)), (b"?", b"?")])
    assert list(shown.members) == [A, B]
    assert shown.active == B
    assert members_of([]).active is None


def test_what_a_member_says_is_a_short_text_that_prints_and_a_time_that_exists() -> None:  # invariant P
    said = json.dumps({"run": "r", "host": "vm\x1b[2J\u202e\n" + "x" * 1_000_000, "since": 10**300, "place": "p"})
    member = decode_member(said.encode())
    assert member is not None
    assert (member.host.isprintable(), len(member.host), member.since) == (True, 256, 253_402_300_799_999)
    assignment = decode_assignment(json.dumps({"active": "r", "reason": "\r" * 999, "since": -1}).encode())
    assert assignment is not None
    assert (assignment.reason.isprintable(), len(assignment.reason), assignment.since) == (True, 256, 0)
