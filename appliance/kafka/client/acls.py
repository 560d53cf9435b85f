"""The ACLs of topics (KIP-11, KIP-290): DescribeAcls, CreateAcls and DeleteAcls, as every broker since 2.8 has them.

Also the key's own operations, which Metadata returns without any right to see ACLs (KIP-430).
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kio.schema.create_acls.v2 import CreateAclsRequest, CreateAclsResponse
from kio.schema.create_acls.v2.request import AclCreation
from kio.schema.delete_acls.v2 import DeleteAclsRequest, DeleteAclsResponse
from kio.schema.delete_acls.v2.request import DeleteAclsFilter
from kio.schema.describe_acls.v2 import DescribeAclsRequest, DescribeAclsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse
from kio.static.primitive import i8
from kio.static.protocol import RequestPayload

from appliance.errors import ApplianceError, BrokerRefused
from appliance.grouping import pieces
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.protocol import metadata
from appliance.kafka.protocol.answer import failure
from appliance.kafka.protocol.versions import offers
from appliance.settings.role import prefix_of

_TOPIC_RESOURCE = i8(2)
_ANY = i8(1)
_UNTOLD = -(2**31)
"""In place of the bits of the operations that the key may do."""

_AT_ONCE = 500
"""Most ACLs in one request: a controller writes each request at once, and has a bound of 10,000 records for it."""


class AclOperation(enum.IntEnum):
    """The operations that an ACL of a topic may name, as Kafka numbers them."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11


class AclPermission(enum.IntEnum):
    """The two kinds of ACL; of both on one topic a denial counts."""

    DENY = 2
    ALLOW = 3


class PatternType(enum.IntEnum):
    """The way in which an ACL names topics."""

    LITERAL = 3
    PREFIXED = 4


_OPERATIONS = frozenset(map(int, AclOperation))


@dataclass(frozen=True, slots=True, order=True)
class AccessControlEntry:
    """One right that a principal has or is denied, from a host or ``*``."""

    permission: AclPermission
    principal: str
    host: str
    operation: AclOperation

    def __str__(self) -> str:
        """The entry for people."""
        return f"{self.permission.name} {self.principal} from {self.host} {self.operation.name}"


@dataclass(frozen=True, slots=True, order=True)
class AclBinding:
    """An entry with the topics that it is for: one, those that begin so, or all by the literal ``*``."""

    name: str
    pattern: PatternType
    entry: AccessControlEntry

    def __str__(self) -> str:
        """The binding for people."""
        return f"{self.entry} on {self.name}"


async def topic_acls(cluster: Cluster) -> list[AclBinding]:
    """All ACLs of topics."""
    connection = await _able(cluster, DescribeAclsRequest)
    request = DescribeAclsRequest(
        resource_type_filter=_TOPIC_RESOURCE,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )
    answer = await connection.call(request, DescribeAclsResponse)
    if answer.error_code is not ErrorCode.none:
        raise _refusal(cluster, answer.error_code, "describe ACLs", "Describe")
    return [
        AclBinding(
            resource.resource_name,
            PatternType(resource.pattern_type),
            AccessControlEntry(
                AclPermission(acl.permission_type), acl.principal, acl.host, AclOperation(acl.operation)
            ),
        )
        for resource in answer.resources
        for acl in resource.acls
        if int(acl.operation) in _OPERATIONS
    ]


async def create_acls(cluster: Cluster, bindings: Sequence[AclBinding]) -> dict[AclBinding, ApplianceError]:
    """Make ACLs in this order; existing ones stay. Returns the errors of those that could not be made."""
    connection = await _able(cluster, CreateAclsRequest)
    failures: dict[AclBinding, ApplianceError] = {}
    for some in pieces(((each, 1) for each in bindings), _AT_ONCE):
        creations = tuple(
            AclCreation(
                resource_type=_TOPIC_RESOURCE,
                resource_name=each.name,
                resource_pattern_type=i8(each.pattern),
                principal=each.entry.principal,
                host=each.entry.host,
                operation=i8(each.entry.operation),
                permission_type=i8(each.entry.permission),
            )
            for each in some
        )
        answer = await connection.call(CreateAclsRequest(creations=creations), CreateAclsResponse)
        for each, result in zip(some, answer.results, strict=True):
            if result.error_code is not ErrorCode.none:
                words = f"{each}: {result.error_message}"
                failures[each] = _refusal(cluster, result.error_code, "make ACLs", "Alter", words)
    return failures


async def delete_acls(cluster: Cluster, bindings: Sequence[AclBinding]) -> dict[AclBinding, ApplianceError]:
    """Remove exactly these ACLs, if they exist. Returns the errors of those that could not be removed."""
    connection = await _able(cluster, DeleteAclsRequest)
    failures: dict[AclBinding, ApplianceError] = {}
    for some in pieces(((each, 1) for each in bindings), _AT_ONCE):
        filters = tuple(
            DeleteAclsFilter(
                resource_type_filter=_TOPIC_RESOURCE,
                resource_name_filter=each.name,
                pattern_type_filter=i8(each.pattern),
                principal_filter=each.entry.principal,
                host_filter=each.entry.host,
                operation=i8(each.entry.operation),
                permission_type=i8(each.entry.permission),
            )
            for each in some
        )
        answer = await connection.call(DeleteAclsRequest(filters=filters), DeleteAclsResponse)
        for each, result in zip(some, answer.filter_results, strict=True):
            codes = (result.error_code, *(acl.error_code for acl in result.matching_acls))
            if code := next((code for code in codes if code is not ErrorCode.none), None):
                words = f"{each}: {result.error_message}"
                failures[each] = _refusal(cluster, code, "remove ACLs", "Alter", words)
    return failures


async def permitted_operations(cluster: Cluster, topics: Sequence[str]) -> dict[str, frozenset[AclOperation]]:
    """The operations that the key may do on each existing topic; none where the broker does not list them."""
    connection = await cluster.any_broker()
    request = replace(metadata.request(topics), include_topic_authorized_operations=True)
    answer = await connection.call(request, MetadataResponse)
    return {
        str(topic.name): frozenset(one for one in AclOperation if topic.topic_authorized_operations >> one & 1)
        for topic in answer.topics
        if topic.error_code is ErrorCode.none and topic.topic_authorized_operations != _UNTOLD
    }


async def _able(cluster: Cluster, request: type[RequestPayload]) -> Connection:
    """A connection to a broker that has the API; whichever it is, it passes changes on to the controller."""
    connection = await cluster.any_broker()
    if not offers(connection.offered, request):
        name = request.__name__.removesuffix("Request")
        raise BrokerRefused(f"the {cluster.side} cluster's brokers lack {name}", "UNSUPPORTED_VERSION")
    return connection


def _refusal(cluster: Cluster, code: ErrorCode, doing: str, operation: str, words: str | None = None) -> ApplianceError:
    if code is ErrorCode.cluster_authorization_failed:
        key = f"{prefix_of(cluster.side)}_API_KEY"
        return BrokerRefused(f"{doing}: grant {key} {operation} on the cluster", code.name.upper())
    if code is ErrorCode.security_disabled:
        return BrokerRefused(f"{doing}: the {cluster.side} cluster has no authorizer, so no ACLs", code.name.upper())
    return failure(code, doing, words)
