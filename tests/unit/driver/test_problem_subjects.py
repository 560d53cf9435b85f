"""The problems of work beside the copying, among those of partitions whose topics have names that begin like theirs."""

from types import SimpleNamespace
from typing import Any

import pytest

from appliance.driver.acl_follower import AclFollower
from appliance.driver.discovery import TopicDiscovery
from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError, LinkRefused
from appliance.link.handle import Link
from appliance.link.model.claims import Claim
from tests.support.facts import settings


class Registry:
    """A registry that can be read again, and says that the link was deleted."""

    link = ""
    ledger = SimpleNamespace(unreadable={}, deletion=Claim("replicator-orange", 0, deleted_by="me@host"))

    async def refresh(self) -> None:
        """There is nothing new."""


def problems_of(*subjects: str) -> ProblemLog:
    problems = ProblemLog()
    for subject in subjects:
        problems.tell(subject, ApplianceError("no right"))
    return problems


async def test_case_1151_work_that_succeeds_ends_its_own_problems_and_none_of_a_partition() -> None:
    # Those of topics `registry` and `ACLs` were over at each search, and told again by their lanes.
    nobody: Any = None
    problems = problems_of("ACLs", "ACLs-0")
    follower = AclFollower(nobody, "User:replicator", problems)
    for _ in range(5):
        await follower.follow({})
    assert list(problems.open) == ["ACLs-0"]
    problems, link = problems_of("registry orders.copy", "registry ", "registry-0"), Link.of(settings(), nobody, nobody)
    registry: Any = Registry()
    link.registry = registry
    with pytest.raises(LinkRefused):
        await TopicDiscovery(link, settings().topics, problems=problems).search()
    assert list(problems.open) == ["registry-0"]
