"""The outcomes of removing topics, and of deleting a link, in lines and as JSON."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field

from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.naming import Naming
from appliance.listing import first_lines


@dataclass(frozen=True, slots=True)
class GivenUpCopy:
    """A source topic and its copy; ``copied`` are records, None if the count is no longer remembered.

    The copy is ``there`` or not; ``deleted``: it is deleted with the topic; ``promoted``: it was promoted. The topic of
    its ``dead_letters``, None if there is none, holds records as they came.
    """

    topic: str
    copy: str
    there: bool
    deleted: bool = False
    promoted: bool = False
    copied: int | None = None
    dead_letters: str | None = None
    dead_letters_deleted: bool = False

    def __str__(self) -> str:
        """Describe the future of the copy and its dead letters in one line."""
        end = "is deleted" if self.dead_letters_deleted else "stays, with records as they came"
        return self._of_copy() + (f"; {self.dead_letters} {end}" if self.dead_letters else "")

    def _of_copy(self) -> str:
        records = "" if self.copied is None else f" with {self.copied:,} copied records"
        if self.deleted:
            return f"{self.copy} is deleted{records}"
        return f"{self.copy} stays, a topic of its own{records}" if self.there else f"there is no {self.copy}"


@dataclass(frozen=True, slots=True)
class RemovalReport:
    """The topics that a run has removed, or with ``dry_run`` would, each with its copy."""

    replicator: str
    dry_run: bool = False
    removed: tuple[GivenUpCopy, ...] = ()

    def lines(self) -> Iterator[str]:
        """Print it for the operator."""
        would = "would be " if self.dry_run else ""
        yield from first_lines([f"{each.topic}: {would}removed; {each}" for each in self.removed], "topics")

    def document(self) -> dict[str, object]:
        """The JSON object; null is unknown."""
        removed = [asdict(each) for each in self.removed]
        return {"replicator": self.replicator, "dry_run": self.dry_run, "removed": removed}


@dataclass(frozen=True, slots=True)
class DeletionReport:
    """The parts of a link that a run has deleted, or with ``dry_run`` would.

    ``topics`` are the link's own at the destination, ``source_topics`` those at the source; None if the source does not
    answer. ``copies`` are those of this link.
    """

    replicator: str
    dry_run: bool = False
    topics: tuple[str, ...] = ()
    source_topics: tuple[str, ...] | None = ()
    copies: tuple[GivenUpCopy, ...] = field(default_factory=tuple)

    def lines(self) -> Iterator[str]:
        """Print it for the operator."""
        would = "would be " if self.dry_run else ""
        yield f"{self.replicator}: {would}deleted"
        for topic in (*self.topics, *(self.source_topics or ())):
            yield f"{topic}: {would}deleted"
        yield from first_lines(self.copies, "copies")
        if self.source_topics is None:
            yield "the source does not answer: what a failback has left there stays; the same command again deletes it"

    def document(self) -> dict[str, object]:
        """The JSON object; null is unknown."""
        return {
            "replicator": self.replicator,
            "dry_run": self.dry_run,
            "topics": list(self.topics),
            "source_topics": None if self.source_topics is None else list(self.source_topics),
            "copies": [asdict(each) for each in self.copies],
        }


def copied_records(checkpoints: Collection[LaneCheckpoint], naming: Naming) -> Mapping[str, int]:
    """Number of records in each copy, by its name."""
    counts: dict[str, int] = {}
    for checkpoint in checkpoints:
        for (topic, _), position in checkpoint.positions.items():
            copy = naming.destination(topic)
            counts[copy] = counts.get(copy, 0) + position.records
    return counts
