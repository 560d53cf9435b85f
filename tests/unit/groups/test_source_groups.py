"""The leader epochs of groups' commits, of which any client writes any."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar
from uuid import UUID

import pytest

from appliance.errors import ApplianceError
from appliance.groups import source_groups
from appliance.groups.group_io import ReadGroups
from appliance.groups.source_groups import SourceGroups
from appliance.kafka.client.group_offsets import Commit
from appliance.kafka.client.groups import Group
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.link.model.naming import Naming
from tests.support.facts import settings

LEADERS_EPOCH = 5


class Source:
    async def metadata(self, _: object) -> Metadata:
        topic = Topic("payments", UUID(int=1), False, (1,) * 100, epochs=(LEADERS_EPOCH,) * 100)
        return Metadata("c", 1, {}, {"payments": topic})


class Ends:
    """The ends of epochs, all at 7; notes what is asked for."""

    asked: ClassVar[list[Mapping[Partition, int]]] = []

    def __init__(self, _: object) -> None:
        pass

    async def read(
        self, _: Metadata, epochs: Mapping[Partition, int], __: Collection[Partition] = ()
    ) -> tuple[dict[Partition, int], dict[Partition, ApplianceError]]:
        self.asked.append(epochs)
        return dict.fromkeys(epochs, 7), {}


def groups(epochs: Collection[int]) -> ReadGroups:
    """One group for each epoch, with a commit in each partition."""
    commits = {f"group-{e}": {Partition("payments", n): Commit(10, "", e) for n in range(100)} for e in epochs}
    return ReadGroups({name: Group(name, 1) for name in commits}, commits, {})


@pytest.mark.asyncio
async def test_case_1033_epochs_that_no_leader_has_had_are_not_asked_for_and_unused_tables_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_groups, "EpochEnds", Ends)
    monkeypatch.setattr(Ends, "asked", [])
    source: Any = Source()
    known = SourceGroups(source, Naming.of(settings()), settings().groups.takes)
    held = await known.until_truncation(groups([-1, 3, LEADERS_EPOCH, *range(10**6, 10**6 + 100)]))
    assert Ends.asked == [{Partition("payments", n): 3 for n in range(100)}]
    assert {name: {commit.offset for commit in each.values()} for name, each in held.offsets.items()} == {
        name: {7 if name == "group-3" else 10} for name in held.offsets
    }
    assert list(known.epoch_ends) == [3]
    await known.until_truncation(groups([4]))
    assert list(known.epoch_ends) == [4]
