"""The ACLs that copies get of their source topics."""

import uuid
from collections.abc import Iterable
from dataclasses import replace

import pytest

from appliance.errors import PeerError
from appliance.kafka.client.acls import AccessControlEntry, AclBinding, AclOperation, AclPermission, PatternType
from appliance.link.model.claims import Claim, decode_claim, encode_claim
from appliance.link.model.copied_acls import CopiedAcls, Entries, acl_changes, copied_acls, principal_of

OP = AclOperation
LINK = "User:link"
COPY = ("orders.copy", uuid.UUID(int=7))


def allow(operation: AclOperation, principal: str = "User:alice", host: str = "*") -> AccessControlEntry:
    return AccessControlEntry(AclPermission.ALLOW, principal, host, operation)


def deny(operation: AclOperation, principal: str = "User:alice", host: str = "*") -> AccessControlEntry:
    return replace(allow(operation, principal, host), permission=AclPermission.DENY)


def literal(name: str, *entries: AccessControlEntry) -> list[AclBinding]:
    return [AclBinding(name, PatternType.LITERAL, entry) for entry in entries]


def prefixed(name: str, *entries: AccessControlEntry) -> list[AclBinding]:
    return [AclBinding(name, PatternType.PREFIXED, entry) for entry in entries]


def of(bindings: Iterable[AclBinding], topic: str = "orders") -> CopiedAcls:
    return copied_acls(bindings, [topic], LINK)[topic]


def entries(*of_copy: AccessControlEntry) -> Entries:
    return frozenset(of_copy)


def test_acls_that_cover_a_topic_by_name_by_prefix_or_by_all_come_over_and_no_others() -> None:
    covering = [
        *literal("orders", allow(OP.READ, "User:by-name")),
        *prefixed("ord", allow(OP.READ, "User:by-prefix")),
        *prefixed("orders", allow(OP.READ, "User:by-whole-name")),
        *literal("*", allow(OP.READ, "User:by-all")),
    ]
    beside = [
        *literal("orders-eu", allow(OP.READ, "User:other")),
        *literal("ord", allow(OP.READ, "User:other")),
        *prefixed("orders-", allow(OP.READ, "User:other")),
        *prefixed("*", allow(OP.READ, "User:other")),
    ]
    names = "by-name", "by-prefix", "by-whole-name", "by-all"
    assert of(covering + beside) == CopiedAcls(entries(*(allow(OP.READ, f"User:{name}") for name in names)))


@pytest.mark.parametrize("operation", [OP.WRITE, OP.CREATE, OP.DELETE, OP.ALTER, OP.ALTER_CONFIGS])
def test_a_right_to_change_is_never_granted(operation: AclOperation) -> None:
    assert of(literal("orders", allow(operation))) == CopiedAcls()


def test_of_all_rights_those_to_read_are_granted_and_hosts_stay() -> None:
    read = (OP.READ, OP.DESCRIBE, OP.DESCRIBE_CONFIGS)
    assert of(literal("orders", allow(OP.ALL, host="10.0.0.1"))).entries == entries(
        *(allow(operation, host="10.0.0.1") for operation in read)
    )


@pytest.mark.parametrize("operation", list(AclOperation))
def test_every_denial_comes_over_as_it_is(operation: AclOperation) -> None:
    assert of(prefixed("o", deny(operation))) == CopiedAcls(entries(deny(operation)))


@pytest.mark.parametrize("principal", ["User:*", LINK])
@pytest.mark.parametrize("operation", list(AclOperation))
def test_a_denial_that_would_bind_the_link_stays_behind(principal: str, operation: AclOperation) -> None:
    denial = deny(operation, principal)
    assert of(literal("orders", denial)) == CopiedAcls(left_out=entries(denial))


@pytest.mark.parametrize(
    ("denied", "granted"),
    [
        (OP.READ, {OP.DESCRIBE, OP.DESCRIBE_CONFIGS}),
        (OP.DESCRIBE, {OP.DESCRIBE_CONFIGS}),
        (OP.DESCRIBE_CONFIGS, {OP.READ, OP.DESCRIBE}),
        (OP.WRITE, {OP.READ, OP.DESCRIBE, OP.DESCRIBE_CONFIGS}),
        (OP.ALL, set()),
    ],
)
@pytest.mark.parametrize("host", ["*", "10.0.0.1"])
def test_nobody_gains_by_a_denial_of_everybody_that_stays_behind(
    denied: AclOperation, granted: set[AclOperation], host: str
) -> None:
    at_source = prefixed("ord", allow(OP.ALL)) + literal("orders", deny(denied, "User:*", host))
    assert of(at_source).entries == entries(*map(allow, granted))


def test_a_denial_of_the_link_takes_nothing_from_others() -> None:
    at_source = literal("orders", allow(OP.READ), allow(OP.READ, LINK), deny(OP.ALL, LINK))
    assert of(at_source).entries == entries(allow(OP.READ))


def test_missing_acls_are_made_and_only_those_that_the_link_made_are_removed() -> None:
    ours, own, new = allow(OP.READ, "User:ours"), allow(OP.WRITE, "User:own"), allow(OP.READ, "User:new")
    changes = acl_changes({"c": entries(new)}, {"c": entries(ours, own)}, {"c": entries(ours), "gone": entries(ours)})
    assert (changes.made, changes.removed) == ({"c": entries(new)}, {"c": entries(ours)})
    assert not acl_changes({"c": entries(own)}, {"c": entries(own)}, {})


def test_an_acl_that_the_link_made_is_removed_where_a_broker_that_lags_does_not_show_it() -> None:
    ours = entries(allow(OP.READ))
    assert acl_changes({"c": frozenset()}, {}, {"c": ours}).removed == {"c": ours}


def test_without_a_key_the_link_is_anonymous() -> None:
    assert (principal_of("grape"), principal_of("")) == ("User:grape", "User:ANONYMOUS")


def test_a_claim_remembers_acls_and_one_without_any_is_written_as_by_older_releases() -> None:
    claim = Claim("link", 5, ("retention.ms",), 3)
    remembering = replace(claim, acls=entries(allow(OP.READ), deny(OP.ALTER_CONFIGS, "User:bob", "10.0.0.1")))
    assert decode_claim(encode_claim(COPY, "link", remembering, 9)) == (COPY, "link", remembering)
    assert decode_claim(encode_claim(COPY, "link", claim, 9)) == (COPY, "link", claim)
    assert b"acls" not in encode_claim(COPY, "link", claim, 9).body


def test_an_operation_of_a_newer_release_is_refused_and_not_forgotten() -> None:
    record = encode_claim(COPY, "link", Claim("link", 5, acls=entries(allow(OP.READ))), 9)
    newer = record._replace(body=record.body.replace(b'"READ"', b'"RAED"'))
    with pytest.raises(PeerError, match="replicator-registry holds something else"):
        decode_claim(newer)
