"""The start and the end of a replicator, and the services beside its copying."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from appliance.audit.model.progress import AuditProgress
from appliance.driver.background import Background, Repeated
from appliance.driver.composition import Composition
from appliance.driver.discovery import Search
from appliance.driver.task_reports import Ending
from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError, Fenced, LinkRefused
from appliance.groups.model.newest_groups import NewestGroups
from appliance.link.model.replicas import DiscoveredTopics, Replica
from appliance.settings.engine import Bound
from appliance.settings.parse import parse
from appliance.settings.role import Role
from tests.support.patience import PATIENCE
from tests.support.settings import REQUIRED
from tests.unit.driver.parts import Jvm, jobs, lines, replicator

ANOTHER = Replica("payments", 0, "payments.copy", UUID(int=1), UUID(int=2))


class Cluster:
    """A cluster that answers once it is reached, but says nothing of topics."""

    def __init__(self, *, reached: bool = True) -> None:
        self.asked, self.reached = asyncio.Event(), reached

    async def metadata(self, topics: object) -> None:
        self.asked.set()
        if topics or not self.reached:
            await asyncio.Event().wait()


class Alone:
    """The membership of a replicator that is the only one."""

    refused = None
    active, turned, displaced = True, 0.0, 0

    def __init__(self) -> None:
        self.assigned, self.left = asyncio.Event(), asyncio.Event()
        self.assigned.set()

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def until_active(self) -> bool:
        return await self.assigned.wait()

    async def until_passive(self) -> None:
        await asyncio.Event().wait()

    def tell_ready(self, ready: bool) -> None:
        """Nobody hears it."""

    async def leave(self) -> None:
        self.left.set()


def composed(source: Cluster, **variables: str) -> tuple[Composition, Jvm]:
    """A replicator whose link is never established."""
    bound, jvm, clusters = Bound(0, lambda: 0), Jvm(), (source, Cluster())
    doubles: Any = (*clusters, jvm, asyncio.Event(), bound, NewestGroups(), AuditProgress(""), ProblemLog(), Alone())
    return Composition(parse(REQUIRED | variables, Role.REPLICATOR), *doubles), jvm


async def stopped(run: Composition, since: asyncio.Event) -> None:
    """Run it, and stop it once this has happened."""
    work = asyncio.create_task(run.run())
    async with asyncio.timeout(PATIENCE):
        await since.wait()
        run.stopping.set()
        await work


async def test_case_63_a_stop_does_not_wait_for_spark_to_start() -> None:
    # It may take three minutes, and Docker gives half a minute; Java does no work yet that is worth waiting for.
    run, jvm = composed(Cluster())
    await stopped(run, jvm.asked)
    assert jvm.killed.is_set()


async def test_case_62_a_stop_does_not_wait_for_a_cluster_that_is_dialled() -> None:
    source = Cluster(reached=False)
    run, jvm = composed(source)
    await stopped(run, source.asked)
    assert jvm.killed.is_set()
    assert not jvm.asked.is_set()


@pytest.mark.parametrize("gave_way", [True, False])
async def test_case_1540_a_stop_of_one_that_another_member_has_displaced_is_no_failure(gave_way: bool) -> None:
    # It ended with exit code 1, and the line of one whose link has a second replicator outside of the group.
    run, jvm = composed(Cluster())
    run.membership.active = not gave_way  # type: ignore[misc]
    run.ending.error = Fenced("lane 0")
    with contextlib.nullcontext() if gave_way else pytest.raises(Fenced):
        await stopped(run, jvm.asked)


USUAL = {"discovery", "bound of the link", "maps of offsets"}


@pytest.mark.parametrize(
    ("variables", "more"),
    [
        ({"REPLICA_GROUPS_REGEX": ""}, set()),
        ({"REPLICA_GROUPS_REGEX": "", "MM2_FORMATS": "yes"}, {"heartbeats"}),
        ({"REPLICA_GROUPS_REGEX": ".*", "AUDIT_PATH": "/var/audit"}, {"groups of the link", "audit table"}),
    ],
)
async def test_what_is_wanted_beside_the_copying_is_done_there(variables: dict[str, str], more: set[str]) -> None:
    run, _ = composed(Cluster(), **variables)
    spark: Any = None
    names = {each.name for each in (*run.services(replicator(jobs())), *run.services_in(spark))}
    assert names == USUAL | more


@pytest.mark.parametrize("reaction", ["stop", "dead-letter"])
def test_the_tasks_are_told_what_to_do_with_a_record_that_the_sql_fails_on(reaction: str, tmp_path: Path) -> None:
    file = tmp_path / "transform.sql"
    file.write_text("SELECT key FROM records")
    run, _ = composed(Cluster(), REPLICA_TRANSFORM_SQL_FILE=str(file), ON_TRANSFORM_ERROR=reaction)
    assert run.endpoint(replicator(jobs())).on_transform_error == reaction
    plain, _ = composed(Cluster())
    assert not plain.endpoint(replicator(jobs())).on_transform_error


async def test_a_service_goes_on_after_any_failure_which_is_told_once_and_is_over_with_the_next_success(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    done, background = asyncio.Event(), Background(ProblemLog())
    failures: list[Exception] = [ValueError("a defect"), ApplianceError("no answer"), ApplianceError("no answer")]

    async def step() -> None:
        if failures:
            raise failures.pop()
        done.set()

    background.start([Repeated("heartbeats", 0.0, step)])
    async with asyncio.timeout(PATIENCE):
        await done.wait()
        await asyncio.sleep(0)
    await background.stop()
    assert lines(caplog) == ["no answer", "unexpected ValueError: a defect", "well again"]


async def test_a_service_of_one_step_ends_with_it() -> None:
    steps, background = list[int](), Background(ProblemLog())

    async def step() -> None:
        steps.append(1)

    background.start([Repeated("maps", None, step)])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await background.stop()
    assert steps == [1]


async def test_a_replicator_whose_link_is_deleted_meanwhile_ends_and_says_so() -> None:
    class Deleted:
        async def search(self) -> DiscoveredTopics:
            raise LinkRefused("the link was deleted")

    run, jvm = composed(Cluster())
    discovery: Any = Deleted()
    with pytest.raises(LinkRefused):
        await Search(discovery, 1.0, lambda _: None, run.ending).step()
    assert run.ending.begun.is_set()
    with pytest.raises(LinkRefused, match="the link was deleted"):
        await stopped(run, jvm.asked)


async def test_a_topic_that_cannot_be_copied_is_told_of_until_it_can_and_the_others_are_copied() -> None:
    class Discovery:
        problems, unfit = ProblemLog(), {"orders": "orders.copy has 1 partitions"}

        async def search(self) -> DiscoveredTopics:
            return DiscoveredTopics((ANOTHER,), unfit=self.unfit)

    taken, discovery = list[Sequence[Replica]](), Discovery()
    search = Search(cast("Any", discovery), 1.0, taken.append, Ending("replicator-orange"))
    await search.step()
    assert list(discovery.problems.open) == ["topic orders"]
    discovery.unfit = {}
    await search.step()
    assert discovery.problems.open == {}
    assert taken == [(ANOTHER,)]


class Taken(Alone):
    """The membership of a replicator whose lanes another member takes, and that hears of nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def confirm(self) -> None:
        self.asked.set()
        await asyncio.Event().wait()


async def test_case_1504_a_stop_ends_a_replicator_that_asks_who_has_its_lanes() -> None:
    # The stop cut the question off, and was forgotten: the process was killed after half a minute.
    run, _ = composed(Cluster())
    membership: Any = Taken()
    run.membership = membership
    work = asyncio.create_task(run.run())
    async with asyncio.timeout(PATIENCE):
        while not run.run_name:
            await asyncio.sleep(0)
        run.ending.fenced("lane 0")
        await membership.asked.wait()
        run.stopping.set()
        with pytest.raises(Fenced):
            await work


async def test_case_1505_services_end_with_the_assignment_and_not_with_the_last_transactions() -> None:
    # Two replicators searched for topics and wrote heartbeats while the one that gave way finished its Spark job.
    run, _ = composed(Cluster())
    beside, ended = Background(ProblemLog()), asyncio.Event()

    async def step() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    beside.start([Repeated("heartbeats", 0.0, step)])
    ending = asyncio.create_task(run._end_services(beside))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    run.ending.begun.set()
    async with asyncio.timeout(PATIENCE):
        await ended.wait()
        await ending
