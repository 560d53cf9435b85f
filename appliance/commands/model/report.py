"""The outcome of a command that changes states, in lines and as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from appliance.commands.model.loss import PartitionLoss, total
from appliance.commands.model.torn_transactions import NOTHING_TORN, TornTransactions
from appliance.link.model.copy_states import LINK, CopyState, StateRecord
from appliance.listing import counted, first_lines, number, some
from appliance.timestamps import utc

_NAMED = 40


@dataclass(frozen=True, slots=True)
class Report:
    """The states that a run has set, or with ``dry_run`` would set; and the topics that stay unchanged.

    ``losses`` are those of each partition of the promoted topics. ``groups`` are those that are not
    synced, with their states; None if unknown. ``torn`` are the source's partly copied transactions; None likewise.
    """

    replicator: str
    dry_run: bool = False
    states: tuple[StateRecord, ...] = ()
    kept: Mapping[str, CopyState] = field(default_factory=dict)
    losses: tuple[PartitionLoss, ...] = ()
    groups: Mapping[str, str] | None = field(default_factory=dict)
    torn: TornTransactions | None = NOTHING_TORN

    def lines(self) -> Iterator[str]:
        """Print it for the operator."""
        would = "would be " if self.dry_run else ""
        link = next((record.state for record in self.states if record.topic == LINK and record.state.follows), None)
        for record in self.states:
            if record.topic == LINK or record.state is not link:  # those with a record of their own follow the link
                yield f"{record.subject}: {would}{record.state}"
        for topic, state in self.kept.items():
            yield f"{topic or 'the link'}: stays {state}"
        if not (self.states or self.kept):
            yield "nothing is to be done"
        if self.losses:
            yield from self._losses()
            yield from self._torn()
        if self.groups is None:
            yield "groups: unknown, since the source does not answer: they are where their last sync has put them"
        elif self.groups:
            named = ", ".join(f"{name} ({state})" for name, state in self.groups.items())
            yield f"groups that are not where they are at the source: {named}"

    def _losses(self) -> Iterator[str]:
        behind = [loss for loss in self.losses if loss.behind != 0 or loss.fault]
        yield f"records behind in {counted(len(self.losses), 'partition')}: {number(total(self.losses))}"
        yield from first_lines(behind, "partitions")
        if by_ends := [f"{loss.topic}-{loss.partition}" for loss in self.losses if loss.by_ends and loss.position]:
            yield f"judged by the ends of the logs alone, as no leader epoch is known: {some(by_ends, _NAMED)}"

    def _torn(self) -> Iterator[str]:
        if self.torn is None:
            yield "transactions copied in part: unknown, since the source does not answer"
            return
        found, unread = self.torn.found, self.torn.unread
        if found:
            yield f"transactions copied in part: {number(len(found))}"
            yield from first_lines(found, "transactions")
        if unread:
            names = some([*map(str, unread)], _NAMED)
            unread_count = counted(len(unread), "partition")
            yield f"not searched to the end for transactions copied in part: {unread_count}: {names}"

    def document(self) -> dict[str, object]:
        """The JSON object; null is unknown."""
        return {
            "replicator": self.replicator,
            "dry_run": self.dry_run,
            "states": [
                {**asdict(record), "topic": record.topic or None, "since": utc(record.since / 1000)}
                for record in self.states
            ],
            "kept": [{"topic": topic or None, "state": state} for topic, state in self.kept.items()],
            "behind": total(self.losses),
            "partitions": [asdict(loss) for loss in self.losses],
            "transactions_copied_in_part": self.torn.document() if self.torn else None,
            "groups_not_synced": None if self.groups is None else list(self.groups),
            "groups_not_synced_states": None if self.groups is None else dict(self.groups),
        }
