"""The outcome of a reset, in lines and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from appliance.commands.model.position_change import Change
from appliance.link.model.position import UNKNOWN
from appliance.listing import counted, first_lines


@dataclass(frozen=True, slots=True)
class ResetReport:
    """The changes that a run made, or with ``dry_run`` would make, and the topics that stay paused."""

    replicator: str
    dry_run: bool = False
    changes: Sequence[Change] = ()
    paused: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        """Print it for the operator."""
        if not self.changes:
            yield "nothing is to be done: every partition is there already"
            return
        yield from first_lines(self.changes, "partitions")
        yield f"{'would change' if self.dry_run else 'changed'}: {numbers(self.changes)}"
        for topic in self.paused:
            yield f"{topic}: stays paused, until `appliance resume`"

    def document(self) -> dict[str, object]:
        """The JSON object; null is unknown."""
        return {
            "replicator": self.replicator,
            "dry_run": self.dry_run,
            "partitions": [
                {
                    "topic": change.replica.source_topic,
                    "partition": change.replica.partition,
                    "before": None if change.before == UNKNOWN else change.before,
                    "after": change.after.next_offset,
                    "copied_again": _count(change, change.copied_again),
                    "left_out": _count(change, change.left_out),
                }
                for change in self.changes
            ],
            "copied_again": sum(change.copied_again for change in self.changes),
            "left_out": sum(change.left_out for change in self.changes),
            "paused": list(self.paused),
        }


def numbers(changes: Sequence[Change]) -> str:
    """The partitions and offsets of some changes, for people."""
    again, left_out = sum(each.copied_again for each in changes), sum(each.left_out for each in changes)
    unknown = sum(not each.is_known for each in changes)
    text = ", ".join(
        [
            counted(len(changes), "partition"),
            f"{counted(again, 'offset')} copied again",
            f"{counted(left_out, 'offset')} left out",
        ]
    )
    return f"{text}, unknown for {counted(unknown, 'partition')}" if unknown else text


def _count(change: Change, count: int) -> int | None:
    return count if change.is_known else None
