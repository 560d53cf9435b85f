import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from appliance.kafka.records.records import key_and_value
from appliance.link.model.claim_changes import Changes, Claimant
from appliance.link.model.claims import Claim, Copy, decode_claim, encode_claim, given_up, told_topics, topics_of
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
    assert told_topics(replace(RECORD, topics=SECOND), [RELYING, RELYING]) == {SECOND}


def test_case_365_two_thousand_claims_of_a_link_with_a_long_regex_are_small() -> None:
    # With a regex of 58 kB they had 116 MB, in one transaction that has to end within 30 seconds.
    long = LinkTopics("|".join(f"topic-{number:05}" for number in range(5000)))
    changes = first_look(sharing(long), 2000)
    written = [encode_claim(*key, claim, NOW) for key, claim in changes.items()]
    assert 58_000 < sum(len(record.body) for record in written) < 500_000


def test_case_366_claims_of_older_releases_tell_their_topics_until_the_record_is_there() -> None:
    claims = [OLDER, replace(OLDER, topics=SECOND)]
    assert told_topics(None, claims) == {LinkTopics("of-old"), SECOND}
    assert told_topics(None, [OLDER, OLDEST]) == {LinkTopics("of-old"), ALL_TOPICS}
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
    assert told_topics(RECORD, [RELYING, since]) == told
    changes = sharing().tells(RECORD, of_link([RELYING, since]), NOW, renews=True)
    assert changes == ({} if since is RELYING else {(copy(1), LINK): replace(since, recorded=True, topics=None)})


def test_case_368_a_claim_that_relies_on_a_missing_record_may_be_of_any_topic() -> None:
    assert told_topics(None, [RELYING]) == {ALL_TOPICS}


def test_a_command_writes_the_record_only_where_there_is_none() -> None:
    claims = of_link([OLDER])
    assert sharing(SECOND).tells(RECORD, claims, NOW, renews=False) == {}
    assert sharing(SECOND).tells(None, claims, NOW, renews=False) == {KEY: replace(RECORD, rank=-1, topics=SECOND)}


def test_a_claim_keeps_what_it_held_when_it_begins_to_rely_on_the_record() -> None:
    held = replace(OLDER, left_out=("segment.bytes",), rank=4)
    ((key, claim),) = sharing().tells(RECORD, of_link([held]), NOW, renews=True).items()
    assert (key, claim) == ((copy(0), LINK), replace(held, recorded=True, topics=None))
    remembered = {given_up("orders"): {LINK: Claim(LINK, NOW)}}
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
