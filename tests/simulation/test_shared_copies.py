"""Invariant O where two links write one copy: random histories of both, of retention, and of one group at each source.

Pure: the places that links remember and the commits are values here, and a sync may stop between the two.
"""

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from appliance.groups.model.group_plan import GroupPlan, PartitionPlan, plan
from appliance.kafka.client.group_offsets import Commit
from appliance.kafka.client.groups import Group
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.mirror_records import MirrorCheckpoint
from appliance.link.model.offset_map import OffsetMap
from appliance.link.model.offset_tail import MapFilling
from appliance.link.model.position import CopyEnd, Position
from appliance.link.model.translation import Translation

_HISTORIES, _STEPS = 400, 30
_LARGE = 1 << 20
SOURCE, COPY = Partition("orders", 0), Partition("orders.copy", 0)
_ID = uuid.UUID(int=1)


@dataclass(slots=True)
class Link:
    """One link: what it has copied, as source and copy offsets, and how far the group has read its source."""

    name: str
    copied: list[tuple[int, int]] = field(default_factory=list)
    next_source: int = 0
    copied_to: int = 0
    read_to: int = 0

    def map(self) -> OffsetMap:
        """Its map of offsets."""
        filling = MapFilling(0, 0, _LARGE)
        for source, copy in self.copied:
            filling.add(source, copy, 1)
        (tail,) = filling.finished(self.next_source, self.copied_to)
        end = CopyEnd(self.copied_to, 0, 1, 0)
        return OffsetMap((), Position(_ID, _ID, self.next_source, 0, copy_end=end, tail=tail) if self.copied else None)


class Shared:
    """A copy that two links write, and the group at the destination."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.links = [Link("first"), Link("second")]
        self.start = self.end = 0
        self.committed: Commit | None = None
        self.places: dict[str, MirrorCheckpoint] = {}
        self.trace: list[str] = []

    def play(self) -> None:
        """Play it, until both links have synced undisturbed."""
        steps: list[Callable[[Link], None]] = [self.copy, self.copy, self.read, self.retain, self.sync, self.killed]
        for _ in range(_STEPS):
            self.chance.choice(steps)(self.chance.choice(self.links))
        for link in [*self.links, *self.links]:
            self.sync(link)

    def copy(self, link: Link) -> None:
        """A transaction of some records, and its marker; the source has markers of its own."""
        for _ in range(self.chance.randint(1, 4)):
            link.copied.append((link.next_source, self.end))
            link.next_source += self.chance.choice((1, 1, 2))
            self.end += 1
        self.end += 1
        link.copied_to = self.end
        self.trace.append(f"{link.name} copies up to {link.next_source}, at {self.end}")

    def read(self, link: Link) -> None:
        """The group reads on at a source, perhaps past what is copied."""
        link.read_to = self.chance.randint(link.read_to, max(link.next_source + 2, link.read_to))
        self.trace.append(f"{link.name} is read up to {link.read_to}")

    def retain(self, _: Link) -> None:
        """Retention takes the beginning of the copy."""
        if self.chance.random() < 0.3:
            self.start = self.chance.randint(self.start, self.end)
            self.trace.append(f"the copy starts at {self.start}")

    def sync(self, link: Link) -> None:
        """A round of a link's sync."""
        made = self._plan(link)
        self._remember(link, made)
        self.committed = made.commits.get(COPY, self.committed)
        self.trace.append(f"{link.name} syncs: {self.committed}, {self.places}")

    def killed(self, link: Link) -> None:
        """One that is killed before its commits."""
        self._remember(link, self._plan(link))

    def _remember(self, link: Link, made: GroupPlan) -> None:
        for news in made.news:
            self.places[link.name] = news

    def _plan(self, link: Link) -> GroupPlan:
        known = link.map()

        def translate(_: Partition, offset: int) -> Translation:
            return known.unread_from(offset, self.start).within(self.start)

        held = {} if self.committed is None else {COPY: self.committed}
        upstream = {SOURCE: Commit(link.read_to, "", 0)}
        places = dict(self.places)
        sides = Group("billing", 0), upstream, Group("billing", 1), held
        return plan(*sides, "{}.copy".format, translate, lambda _: places, link.name)

    def fault(self) -> str:
        """The record that the group passes unread, or the start that it lies below; empty if there is none."""
        assert self.committed is not None
        at, unread = (
            self.committed.offset,
            [
                copy
                for link in self.links
                for source, copy in link.copied
                if source >= link.read_to and copy >= self.start
            ],
        )
        if at < self.start:
            return f"{at} is committed, and the copy starts at {self.start}"
        return f"{at} is committed, and {min(unread)} is not read" if unread and min(unread) < at else ""


def first_fault() -> str:
    """The first of all histories in which a group passes what it has not read."""
    for seed in range(_HISTORIES):
        shared = Shared(seed)
        shared.play()
        if fault := shared.fault():
            return "\n".join([f"seed {seed}: {fault}", *shared.trace])
    return ""


def test_no_group_passes_what_another_link_has_copied_and_it_has_not_read() -> None:
    assert first_fault() == ""


def test_a_sync_that_overlooks_the_places_of_other_links_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionPlan, "held", property(lambda _: None))
    assert "is not read" in first_fault()


def test_a_sync_that_sets_a_group_below_the_copys_start_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    unread_from = OffsetMap.unread_from
    monkeypatch.setattr(OffsetMap, "unread_from", lambda self, offset, _: unread_from(self, offset, 0))
    monkeypatch.setattr(Translation, "within", lambda self, _: self)
    assert "the copy starts at" in first_fault()
