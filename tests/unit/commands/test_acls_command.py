"""The output of ``appliance acls``."""

from appliance.commands.acls import as_document, as_lines
from appliance.driver.acl_follower import AclDiff
from appliance.kafka.client.acls import AccessControlEntry, AclOperation, AclPermission
from appliance.link.model.copied_acls import AclChanges, CopiedAcls

READ = AccessControlEntry(AclPermission.ALLOW, "User:alice", "*", AclOperation.READ)
DENIED = AccessControlEntry(AclPermission.DENY, "User:*", "*", AclOperation.WRITE)
LOOK = AclDiff(
    {"a": CopiedAcls(left_out=frozenset({DENIED})), "b": CopiedAcls(left_out=frozenset({DENIED}))},
    AclChanges({"a.copy": frozenset({READ})}, {"b.copy": frozenset({READ})}),
)


def test_each_acl_is_a_line_and_a_denial_that_stays_behind_is_one_for_all_topics() -> None:
    assert as_lines(LOOK, follows=True) == [
        "a.copy: make ALLOW User:alice from * READ",
        "b.copy: remove ALLOW User:alice from * READ",
        "DENY User:* from * WRITE on a and 1 more "
        "stays behind with the ALLOWs that it beats: it would bind this link too",
    ]


def test_it_is_said_that_nothing_follows_when_that_is_switched_off() -> None:
    nothing = AclDiff({}, AclChanges({}, {}))
    assert as_lines(nothing, follows=False) == ["ACLS_SYNC=no: none of this is changed"]
    assert as_lines(nothing, follows=True) == ["every copy has the ACLs for its readers"]


def test_json_has_the_same() -> None:
    assert as_document(LOOK, follows=False) == {
        "follows": False,
        "make": {"a.copy": ["ALLOW User:alice from * READ"]},
        "remove": {"b.copy": ["ALLOW User:alice from * READ"]},
        "left_out": {"DENY User:* from * WRITE": ["a", "b"]},
    }
