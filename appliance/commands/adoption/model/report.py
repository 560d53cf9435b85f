"""The outcome of an adoption, in lines and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from appliance.commands.adoption.model.plan import Beginning
from appliance.listing import counted, first_lines, some

_RUNS_MAX = 5


@dataclass(frozen=True, slots=True)
class AdoptionReport:
    """The partitions that a run has adopted, or with ``dry_run`` would; ``remarks`` are lines on everything else."""

    replicator: str
    dry_run: bool = False
    beginnings: Sequence[Beginning] = ()
    remarks: Sequence[str] = ()

    @property
    def refused(self) -> list[Beginning]:
        """The partitions that must not go on."""
        return [each for each in self.beginnings if each.refusal]

    def lines(self) -> Iterator[str]:
        """Print it for the operator."""
        yield from self.remarks
        if not self.beginnings:
            yield "nothing is to be done"
            return
        for text in first_lines(["\n".join(_lines(each)) for each in self.beginnings], "partitions"):
            yield from text.split("\n")
        yield f"{'would be adopted' if self.dry_run else 'adopted'}: {self.numbers()}"

    def numbers(self) -> str:
        """The totals, for people."""
        going = [each for each in self.beginnings if not each.refusal]
        doubles = sum(each.doubled for each in going)
        text = f"{counted(len(going), 'partition')}, {counted(doubles, 'double')} of MirrorMaker 2"
        again, missing = sum(each.again for each in going), sum(len(span) for each in going for span in each.missing)
        text += f", {counted(again, 'record')} copied again" if again else ""
        text += f", {counted(missing, 'offset')} left out" if missing else ""
        return f"{text}; {counted(len(self.refused), 'partition')} refused" if self.refused else text

    def document(self) -> dict[str, object]:
        """The JSON object; null is unknown, or none."""
        return {
            "replicator": self.replicator,
            "dry_run": self.dry_run,
            "partitions": [_document(each) for each in self.beginnings],
            "doubles": sum(each.doubled for each in self.beginnings),
            "remarks": list(self.remarks),
        }


def _lines(each: Beginning) -> Iterator[str]:
    name = each.logs.replica.name
    if each.refusal:
        yield f"{name}: refused: {each.refusal}"
        return
    committed = "nothing" if each.logs.committed is None else f"up to offset {each.logs.committed - 1}"
    yield f"{name} goes on from offset {each.offset}: {each.how}; MirrorMaker 2 had committed {committed}"
    if each.begins > each.compared:
        yield f"{name}: the copy begins with source offset {each.begins}, as far as compared, from {each.compared} on"
    if each.doubles:
        runs = [f"{run.source} to {run.source + run.length - 1} at copy offset {run.copy}" for run in each.doubles]
        yield f"{name}: {counted(each.doubled, 'record')} twice, source offsets {some(runs, _RUNS_MAX)}"
    if each.aborted:
        yield f"{name}: {counted(each.aborted, 'record')} of transactions that the source has aborted"
    if each.unknown:
        first = each.unknown[0]
        unknown = counted(len(each.unknown), "record")
        yield f"{name}: {unknown} that the source does not have, from copy offset {first} on"
    if each.again:
        yield f"{name}: {counted(each.again, 'record')} will be copied again"
    for span in each.missing[:_RUNS_MAX]:
        yield f"{name}: source offsets {span.start} to {span.end - 1} are left out"


def _document(each: Beginning) -> dict[str, object]:
    """A partition; its doubles are listed by the offsets of their first record."""
    return {
        "topic": each.logs.replica.source_topic,
        "copy": each.logs.replica.destination_topic,
        "partition": each.logs.replica.partition,
        "offset": None if each.refusal else each.offset,
        "copy_end": each.logs.copy.end,
        "committed": each.logs.committed,
        "how": each.how,
        "refused": each.refusal or None,
        "compared_from": None if each.compared < 0 else each.compared,
        "begins": None if each.begins < 0 else each.begins,
        "doubled": each.doubled,
        "doubles": [run._asdict() for run in each.doubles],
        "aborted": each.aborted,
        "unknown": len(each.unknown),
        "missing": [asdict(span) for span in each.missing],
        "again": each.again,
    }
