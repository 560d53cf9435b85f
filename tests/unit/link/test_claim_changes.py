import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from appliance.kafka.client.acls import AccessControlEntry, AclOperation, AclPermission
from appliance.kafka.records.records import key_and_value
from appliance.link.model.claim_changes import Changes, Claimant, withdrawals
from appliance.link.model.claims import (
    Claim,
    Copy,
    configs_of,
    decode_claim,
    deletion_of,
    encode_claim,
    memory_of,
    topics_by_claims,
    topics_of,
)
from appliance.link.model.link_topics import ALL_TOPICS, LinkTopics

LINK, OTHER = "replicator-orange", "replicator-lime"
KEY = topics_of(LINK), LINK
NOW = 1_700_000_000_000
FIRST, SECOND = LinkTopics("orders.*"), LinkTopics("payments.*", ("payments-eu",))
RECORD = Claim(LINK, NOW, rank=3, shares=True, topics=FIRST)
RELYING = Claim(LINK, NOW, ("segment.bytes",), 7, shares=True, recorded=True)
OLDER = Claim(LINK, NOW, rank=7, shares=True, topics=LinkTopics("of-old"))
OLDEST = Claim(LINK, NOW, rank=7, shares=True)


def sharing(topics: LinkTopics = FIRST) -> Claimant:
    return Claimant(LINK, shares=True, topics=topics)


def copy(number: int) -> Copy:
    return f"orders-{number}", uuid.UUID(int=100 + number)


def of_link(claims: Iterable[Claim]) -> Mapping[Copy, Mapping[str, Claim]]:
    """Claims on one copy each, beside another link's."""
    return {copy(number): {LINK: claim, OTHER: Claim(OTHER, NOW, rank=9)} for number, claim in enumerate(claims)}


def first_look(claimant: Claimant, copies: int) -> Changes:
    new = [copy(number) for number in range(copies)]
    return claimant.tells(None, {}, NOW, renews=True) | claimant.claims(new, {}, NOW, take_over=False)


def test_a_link_tells_its_topics_before_the_first_claim_that_relies_on_them() -> None:
    assert list(first_look(sharing(), 2)) == [KEY, (copy(0), LINK), (copy(1), LINK)]
    record, *claims = first_look(sharing(SECOND), 2).values()
    assert record == Claim(LINK, NOW, shares=True, topics=SECOND)
    assert claims == [Claim(LINK, NOW, shares=True, recorded=True)] * 2


def test_a_link_that_shares_nothing_tells_nothing() -> None:
    alone = replace(sharing(), shares=False)
    assert first_look(alone, 1) == {(copy(0), LINK): Claim(LINK, NOW)}
    assert alone.tells(RECORD, {}, NOW, renews=True) == {KEY: None}
    assert alone.tells(RECORD, {}, NOW, renews=False) == {}


def test_a_changed_regex_is_told_by_one_record() -> None:
    claims = of_link([RELYING, RELYING])
    assert sharing(SECOND).tells(RECORD, claims, NOW, renews=True) == {KEY: replace(RECORD, rank=-1, topics=SECOND)}
    assert sharing(FIRST).tells(RECORD, claims, NOW, renews=True) == {}
    assert topics_by_claims(replace(RECORD, topics=SECOND), [RELYING, RELYING]) == {SECOND}


def test_case_365_two_thousand_claims_of_a_link_with_a_long_regex_are_small() -> None:
    # With a regex of 58 kB they had 116 MB, in one transaction that has to end within 30 seconds.
    long = LinkTopics("|".join(f"topic-{number:05}" for number in range(5000)))
    changes = first_look(sharing(long), 2000)
    written = [encode_claim(*key, claim, NOW) for key, claim in changes.items()]
    assert 58_000 < sum(len(record.body) for record in written) < 500_000


def test_case_366_claims_of_older_releases_tell_their_topics_until_the_record_is_there() -> None:
    claims = [OLDER, replace(OLDER, topics=SECOND)]
    assert topics_by_claims(None, claims) == {LinkTopics("of-old"), SECOND}
    assert topics_by_claims(None, [OLDER, OLDEST]) == {LinkTopics("of-old"), ALL_TOPICS}
    changes = sharing().tells(None, of_link(claims), NOW, renews=True)
    assert next(iter(changes)) == KEY
    relying = replace(OLDER, recorded=True, topics=None)
    assert changes == {KEY: replace(RECORD, rank=-1), (copy(0), LINK): relying, (copy(1), LINK): relying}


@pytest.mark.parametrize(
    ("since", "told"), [(OLDER, {FIRST, LinkTopics("of-old")}), (OLDEST, {FIRST, ALL_TOPICS}), (RELYING, {FIRST})]
)
def test_case_367_a_record_hides_nothing_that_an_older_release_has_told_since(
    since: Claim, told: set[LinkTopics]
) -> None:
    assert topics_by_claims(RECORD, [RELYING, since]) == told
    changes = sharing().tells(RECORD, of_link([RELYING, since]), NOW, renews=True)
    assert changes == ({} if since is RELYING else {(copy(1), LINK): replace(since, recorded=True, topics=None)})


def test_case_368_a_claim_that_relies_on_a_missing_record_may_be_of_any_topic() -> None:
    assert topics_by_claims(None, [RELYING]) == {ALL_TOPICS}


def test_a_command_writes_the_record_only_where_there_is_none() -> None:
    claims = of_link([OLDER])
    assert sharing(SECOND).tells(RECORD, claims, NOW, renews=False) == {}
    assert sharing(SECOND).tells(None, claims, NOW, renews=False) == {KEY: replace(RECORD, rank=-1, topics=SECOND)}


def test_a_claim_keeps_what_it_held_when_it_begins_to_rely_on_the_record() -> None:
    held = replace(OLDER, left_out=("segment.bytes",), rank=4)
    ((key, claim),) = sharing().tells(RECORD, of_link([held]), NOW, renews=True).items()
    assert (key, claim) == ((copy(0), LINK), replace(held, recorded=True, topics=None))
    remembered = {memory_of("orders"): {LINK: Claim(LINK, NOW)}}
    assert sharing().tells(RECORD, remembered, NOW, renews=True) == {}


@pytest.mark.parametrize("topics", [FIRST, SECOND, ALL_TOPICS])
def test_a_record_comes_back_as_it_was_and_older_releases_take_it_for_the_claim_of_a_shared_copy(
    topics: LinkTopics,
) -> None:
    record = encode_claim(*KEY, replace(RECORD, topics=topics), NOW)
    assert decode_claim(record) == (*KEY, replace(RECORD, topics=topics))
    key, value = (json.loads(part or b"") for part in key_and_value(record.body))
    assert key == {"copy": "replicator-orange.positions", "id": uuid.UUID(int=2).hex, "link": LINK}
    assert value.items() >= {"version": 1, "since": NOW, "rank": 3, "shares": True, "regex": topics.regex}.items()
    assert value["left_out"] == []
    assert sharing(topics).tells(replace(RECORD, topics=topics), {}, NOW, renews=True) == {}


ACLS = frozenset({AccessControlEntry(AclPermission.ALLOW, "User:ann", "*", AclOperation.READ)})
MEMORY = memory_of("orders-0")


def left(*copies: int, **fields: object) -> Claim:
    """What the link remembers of shared copies that it gave up."""
    ids = frozenset(copy(number)[1] for number in copies)
    return replace(Claim(LINK, NOW, shares=True, recorded=True, written=ids), **fields)


def test_a_shared_copy_that_is_given_up_is_remembered_in_place_of_its_claim() -> None:
    claims = of_link([RELYING, RELYING])
    assert withdrawals(LINK, ["orders-0"], claims, NOW) == {(copy(0), LINK): None, (MEMORY, LINK): left(0)}
    alone = of_link([replace(RELYING, shares=False)])
    begun = Claim(LINK, NOW, begun=frozenset({copy(0)[1]}))
    assert withdrawals(LINK, ["orders-0"], alone, NOW) == {(copy(0), LINK): None, (MEMORY, LINK): begun}
    assert withdrawals(LINK, ["payments"], claims, NOW) == {}


def test_what_was_given_up_before_stays_remembered_beside_it() -> None:
    anew = "orders-0", uuid.uuid4()
    claims = {MEMORY: {LINK: left(0, acls=ACLS)}, anew: {LINK: RELYING}}
    both = left(0, acls=ACLS, written=frozenset({copy(0)[1], anew[1]}))
    assert withdrawals(LINK, ["orders-0"], claims, NOW) == {(anew, LINK): None, (MEMORY, LINK): both}


@pytest.mark.parametrize("acls", [frozenset(), ACLS])
def test_after_a_new_claim_of_a_copy_or_the_deletion_of_the_link_it_is_remembered_that_the_copy_was_begun(
    acls: frozenset[AccessControlEntry],
) -> None:
    kept = Claim(LINK, NOW, acls=acls, begun=frozenset({copy(0)[1]}))
    holders = {MEMORY: {LINK: left(0, acls=acls), OTHER: left(0, link=OTHER)}}
    claimed = sharing().claims([copy(0)], holders, NOW, take_over=False)
    assert claimed == {(MEMORY, LINK): kept, (copy(0), LINK): Claim(LINK, NOW, shares=True, recorded=True)}
    anew = "orders-0", uuid.uuid4()
    assert (MEMORY, LINK) not in sharing().claims([anew], holders, NOW, take_over=True)
    deleted = holders | {deletion_of(LINK): {LINK: Claim(LINK, NOW, deleted_by="me")}}
    assert withdrawals(LINK, None, deleted, NOW) == {(MEMORY, LINK): kept}
    assert withdrawals(LINK, None, {MEMORY: {LINK: kept}}, NOW) == {}
    claimed_again = {MEMORY: {LINK: kept}, copy(0): {LINK: RELYING}}
    again = withdrawals(LINK, ["orders-0"], claimed_again, NOW)
    assert again == {(copy(0), LINK): None, (MEMORY, LINK): left(0, acls=acls)}


def test_a_copy_that_was_begun_is_no_copy_that_was_given_up_to_a_release_that_knows_nothing_of_it() -> None:
    begun = Claim(LINK, NOW, begun=frozenset({copy(0)[1]}))
    record = encode_claim(MEMORY, LINK, begun, NOW)
    assert decode_claim(record) == (MEMORY, LINK, begun)
    value = json.loads(key_and_value(record.body)[1] or b"")
    assert value == {"version": 1, "since": NOW, "left_out": [], "rank": -1, "begun": [copy(0)[1].hex]}


def test_what_is_remembered_comes_back_as_it_was_and_older_releases_take_it_for_the_claim_of_a_shared_copy() -> None:
    record = encode_claim(MEMORY, LINK, left(0, 1), NOW)
    assert decode_claim(record) == (MEMORY, LINK, left(0, 1))
    value = json.loads(key_and_value(record.body)[1] or b"")
    assert value == {
        "version": 1,
        "since": NOW,
        "left_out": [],
        "rank": -1,
        "shares": True,
        "recorded": True,
        "written": [copy(0)[1].hex, copy(1)[1].hex],
    }
    assert sharing().tells(RECORD, {MEMORY: {LINK: left(0)}}, NOW, renews=True) == {}
    assert topics_by_claims(RECORD, [left(0)]) == {FIRST}
    assert topics_by_claims(None, [left(0)]) == set()


def test_case_371_a_shared_copy_that_is_taken_over_is_remembered_for_the_links_whose_records_stay_in_it() -> None:
    sole = Claim("replicator-plum", NOW, rank=2)
    holders = {
        copy(0): {LINK: RELYING, OTHER: replace(RELYING, link=OTHER), "replicator-plum": sole},
        MEMORY: {OTHER: left(3, acls=ACLS, link=OTHER)},
    }
    changes = sharing().claims([copy(0)], holders, NOW, take_over=True)
    both = left(0, acls=ACLS, link=OTHER, written=frozenset({copy(0)[1], copy(3)[1]}))
    assert changes.pop((copy(0), LINK)) is not None
    assert changes == {(copy(0), OTHER): None, (copy(0), "replicator-plum"): None, (MEMORY, OTHER): both}


def test_the_settings_of_a_copy_are_remembered_as_long_as_its_claim_and_go_with_it_to_another_link() -> None:
    configs = Claim(LINK, NOW, configs=frozenset({("retention.ms", "1"), ("retention.ms", "2")}))
    key = configs_of("orders-0")
    assert decode_claim(encode_claim(key, LINK, configs, NOW)) == (key, LINK, configs)
    holders = {key: {LINK: configs}, copy(0): {LINK: Claim(LINK, NOW)}}
    memory = Claim(LINK, NOW, begun=frozenset({copy(0)[1]}))
    left = {(key, LINK): None, (copy(0), LINK): None, (memory_of("orders-0"), LINK): memory}
    assert withdrawals(LINK, ["orders-0"], holders, NOW) == left
    other = Claimant(OTHER, shares=False, topics=FIRST)
    assert other.claims([copy(0)], holders, NOW, take_over=True) == {
        (copy(0), LINK): None,
        (copy(0), OTHER): Claim(OTHER, NOW),
        (key, LINK): None,
        (key, OTHER): replace(configs, link=OTHER),
    }


def test_older_releases_take_the_settings_of_a_copy_for_the_claim_of_a_missing_one() -> None:
    record = encode_claim(configs_of("orders-0"), LINK, Claim(LINK, NOW, configs=frozenset({("a", "1")})), NOW)
    value = json.loads(key_and_value(record.body)[1] or b"")
    assert value == {"version": 1, "since": NOW, "left_out": [], "rank": -1, "configs": [["a", "1"]]}
