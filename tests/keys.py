"""``python -m tests.keys``: write docs/reference/json.md, the keys of the JSON that commands print.

Each is taken from a document that the command's own code makes of sample values.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from appliance.commands.model.loss import PartitionLoss
from appliance.commands.model.report import Report
from appliance.commands.model.torn_transactions import Share, TornTransaction, TornTransactions
from appliance.commands.offsets import TranslatedOffset
from appliance.doctor.diagnosis import Diagnosis
from appliance.doctor.step import Result, passed
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import Gap
from appliance.link.model.copy_states import CopyState, StateRecord
from appliance.link.model.link_sql import LinkSql, SqlChange
from appliance.link.model.problems import Fault
from appliance.link.model.translation import TranslationState
from appliance.logs.model.span import CopyState as Compared
from appliance.logs.model.span import Span
from appliance.order.model.shown import document as order_document
from appliance.status.model.document import document
from appliance.status.model.snapshot import AuditStatus, Snapshot
from appliance.status.model.topic_status import BlockingTransaction
from appliance.verify.model.report import PartitionResult, VerificationReport
from tests.key_meanings import MEANINGS
from tests.support.facts import NOW, complete
from tests.support.order_facts import order_view

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "json.md"
_FAULT = Fault("why", NOW)
_STATE = StateRecord("payments", CopyState.PROMOTED, NOW, "me@vm")

_HEAD = """\
# Keys of the JSON

What `--json` prints, for programs. A value that is unknown is null, never 0. Times are ISO 8601 in UTC, durations are
in the unit of the key's name. A release may add keys, and removes or renames none.
The replicator serves the keys of `status` at `/status` as well ([where](status.md#health-and-metrics)).
"""


def status() -> Snapshot:
    """A snapshot in which every key has a value."""
    taken = complete()
    held = OpenTransaction(5, 1, "producer", NOW)
    (topic,) = taken.topics
    gap = Gap(Partition("payments", 0), UUID(int=1), 1, 2, "deleted at the source", NOW)
    full = {"held": BlockingTransaction(held, 3), "gaps": (gap,), "unknown": _FAULT}
    partition = replace(topic.partitions[0], **full)  # type: ignore[arg-type]
    sides = {side: replace(getattr(taken, side), unknown=_FAULT) for side in ("source", "destination")}
    return replace(
        taken,
        **sides,
        stopped=_FAULT,
        topics=(replace(topic, partitions=(partition,), stopped=Fault("payments.copy belongs to link other", NOW)),),
        lanes=tuple(replace(lane, held=held) for lane in taken.lanes),
        sql=SqlChange(LinkSql(1, "SELECT *"), "run", 1, NOW),
        audit=AuditStatus("/audit", 5.0, _FAULT),
        states=(_STATE,),
        excluded=(("other", "why"),),
        groups_unknown=_FAULT,
    )


def documents() -> Mapping[str, Any]:
    """A document of each command."""
    result = PartitionResult("a", "b", 0, Compared.EQUAL, source=Span(0, 1), destination=Span(0, 1))
    verified = VerificationReport("orange", "grape", "", "", [result])
    share = (Share("a", 0, 1, 2),)
    torn = TornTransactions((TornTransaction(1, 0, share, share),), (Partition("a", 0),))
    loss = PartitionLoss("a", 0, 1, 2, 1)
    kept = {"b": CopyState.PAUSED}
    promoted = Report("replicator-orange", states=(_STATE,), kept=kept, losses=(loss,), groups={"GROUP": ""}, torn=torn)
    diagnosis = Diagnosis("destination", "", [Result("settings", passed(""))])
    offset = TranslatedOffset("a", 0, 1, "b", 1, TranslationState.EXACT, 0)
    order = order_document(order_view())
    order["problems"] = [{"subject": "", "reason": "", "remedies": []}]
    return {
        "status": document(status()),
        "doctor": json.loads(diagnosis.as_json()),
        "verify": json.loads(verified.as_json()),
        "promote": json.loads(json.dumps(promoted.document())),
        "offsets": [asdict(offset)],
        "order status": order,
    }


def keys(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The path of each key that holds no other keys, with its value."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from keys(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        for below in value:
            yield from keys(below, f"{path}[]")
    else:
        yield (f"{path}[]", None) if isinstance(value, list | tuple) else (path, value)


def page() -> str:
    """The text of the page: a key without a meaning, and a meaning without a key, are refused."""
    return _HEAD + "".join(_section(command, found) for command, found in documents().items())


def _section(command: str, found: Any) -> str:
    paths = dict.fromkeys(path for path, _ in keys(found))
    meanings = MEANINGS[command]
    assert paths.keys() == meanings.keys(), (command, paths.keys() ^ meanings.keys())
    rows = "".join(f"| `{path}` | {meanings[path]} |\n" for path in paths)
    return f"\n## {command}\n\n| key | meaning |\n|---|---|\n{rows}"


if __name__ == "__main__":
    PAGE.write_text(page())
