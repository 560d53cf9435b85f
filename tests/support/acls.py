"""ACLs of topics, made, removed and listed with an independent client."""

import asyncio

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from testbed.cluster import Cluster
from tests.support.administration import administrator
from tests.support.patience import PATIENCE


def acl(
    name: str, permission: str, principal: str, operation: str, *, host: str = "*", prefixed: bool = False
) -> AclBinding:
    """An ACL of a topic, or of those that begin so."""
    pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    done = AclOperation[operation], AclPermissionType[permission]
    return AclBinding(ResourceType.TOPIC, name, pattern, principal, host, *done)


def add_acls(cluster: Cluster, *bindings: AclBinding) -> None:
    """Make ACLs."""
    admin = administrator(cluster)
    for creation in admin.create_acls(list(bindings)).values():
        creation.result(PATIENCE)


def remove_acls(
    cluster: Cluster, name: str, *, kind: ResourceType = ResourceType.TOPIC, prefixed: bool = False
) -> None:
    """Remove all ACLs that a topic, or another resource, has by its own name, or those with it as a prefix."""
    admin = administrator(cluster)
    pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    for deletion in admin.delete_acls([_filter(name, pattern, kind)]).values():
        deletion.result(PATIENCE)


def acls_of(
    cluster: Cluster, name: str | None = None, pattern: ResourcePatternType = ResourcePatternType.LITERAL
) -> set[AclBinding]:
    """The ACLs that a topic has by its own name, or by a prefix; without a name those of all topics."""
    admin = administrator(cluster)
    return set(admin.describe_acls(_filter(name, pattern)).result(PATIENCE))


async def until_acls(cluster: Cluster, name: str, *bindings: AclBinding) -> None:
    """Wait until a topic has exactly these ACLs by its own name."""
    found: set[AclBinding] = set()
    try:
        async with asyncio.timeout(PATIENCE):
            while (found := acls_of(cluster, name)) != set(bindings):
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{name} has {found}") from None


def _filter(
    name: str | None, pattern: ResourcePatternType, kind: ResourceType = ResourceType.TOPIC
) -> AclBindingFilter:
    every = AclOperation.ANY, AclPermissionType.ANY
    return AclBindingFilter(kind, name, pattern, None, None, *every)
