"""The outcome of a failback, in lines and as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from appliance.link.model.copy_states import CopyState
from appliance.listing import counted, first_lines, number


@dataclass(frozen=True, slots=True)
class ReturnedPartition:
    """One partition: source offsets that were never copied, up to but without the second, and the copy's records.

    ``copied_back`` are records; None in a dry run. ``written_there`` are the offsets of foreign records at the source,
    the first one and past the last one, None if there are none. ``deleted`` are likewise offsets of the copy that
    retention deleted before they were copied back. ``kept`` counts the uncopied records that were kept in topic
    ``kept_in``; None if they were not.
    """

    topic: str
    partition: int
    diverged: tuple[int, int]
    copied_back: int | None = None
    written_there: tuple[int, int] | None = None
    deleted: tuple[int, int] | None = None
    kept: int | None = None
    kept_in: str = ""

    def lines(self) -> Iterator[str]:
        """Describe the skipped offsets."""
        stays = f"they stay in {self.topic}, and are never copied"
        for what, span in (("", self.diverged), (", of a producer there", self.written_there)):
            if span and span[0] < span[1]:
                yield f"{self.topic}-{self.partition}: source offsets {span[0]} to {span[1] - 1}{what}: {stays}"
        if self.kept is not None:
            yield f"{self.topic}-{self.partition}: {self.kept} of these records are kept in {self.kept_in}"
        if self.deleted and self.deleted[0] < self.deleted[1]:
            gone = f"offsets {self.deleted[0]} to {self.deleted[1] - 1} of its copy are deleted"
            yield f"{self.topic}-{self.partition}: {gone}, and can never be brought back"


@dataclass(frozen=True, slots=True)
class FailbackReport:
    """The topics that a run has returned, or with ``dry_run`` would, and those that stay unchanged.

    ``groups`` are those that are not synced, with their states; None if unknown.
    """

    replicator: str
    dry_run: bool = False
    returned: tuple[str, ...] = ()
    kept: Mapping[str, CopyState] = field(default_factory=dict)
    partitions: tuple[ReturnedPartition, ...] = ()
    groups: Mapping[str, str] | None = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Print it for the operator."""
        for topic in self.returned:
            yield f"{topic or 'the link'}: {'would be ' if self.dry_run else ''}active"
        for topic, state in self.kept.items():
            yield f"{topic or 'the link'}: stays {state}"
        if not (self.returned or self.kept):
            yield "nothing is to be done"
        yield from first_lines([line for each in self.partitions for line in each.lines()], "lines")
        if self.partitions and not self.dry_run:
            copied = sum(each.copied_back or 0 for each in self.partitions)
            yield f"records copied back in {counted(len(self.partitions), 'partition')}: {number(copied)}"
        if self.groups is None:
            yield "groups: unknown: they are where they were at the source before"
        elif self.groups:
            named = ", ".join(f"{name} ({state})" for name, state in self.groups.items())
            yield f"groups that are not where they are at the copies: {named}"

    def document(self) -> dict[str, object]:
        """The JSON object."""
        return {
            "replicator": self.replicator,
            "dry_run": self.dry_run,
            "returned": [topic or None for topic in self.returned],
            "kept": [{"topic": topic or None, "state": state} for topic, state in self.kept.items()],
            "partitions": [asdict(each) for each in self.partitions],
            "groups_not_returned": None if self.groups is None else list(self.groups),
            "groups_not_returned_states": None if self.groups is None else dict(self.groups),
        }
