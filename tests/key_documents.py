"""Documents with every key that commands print as JSON, made by the commands' own code of sample values."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from appliance.commands import acls, configs
from appliance.commands.failback.model.failback_report import FailbackReport, ReturnedPartition
from appliance.commands.model.lanes_report import LanesReport, Loads
from appliance.commands.model.loss import PartitionLoss
from appliance.commands.model.position_change import moved
from appliance.commands.model.removal_report import DeletionReport, GivenUpCopy, RemovalReport
from appliance.commands.model.report import Report
from appliance.commands.model.reset_report import ResetReport
from appliance.commands.model.torn_transactions import Share, TornTransaction, TornTransactions
from appliance.commands.offsets import TranslatedOffset
from appliance.commands.offsets_build import MapOutcome
from appliance.commands.order.origin import Line
from appliance.doctor.diagnosis import Diagnosis
from appliance.doctor.step import Result, passed
from appliance.driver.acl_follower import AclDiff
from appliance.driver.config_follower import ConfigDiff
from appliance.errors import BrokerBusy
from appliance.kafka.client.acls import AccessControlEntry, AclOperation, AclPermission
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, body
from appliance.link.model.checkpoint import Gap
from appliance.link.model.copied_acls import AclChanges, CopiedAcls
from appliance.link.model.copy_states import CopyState, StateRecord
from appliance.link.model.layout import Layout
from appliance.link.model.link_sql import LinkSql, SqlChange
from appliance.link.model.position import SourcePlace
from appliance.link.model.problems import Fault
from appliance.link.model.replicas import Replica
from appliance.link.model.translation import TranslationState
from appliance.logs.model.span import CopyState as Compared
from appliance.logs.model.span import Span
from appliance.order.model.shown import document as order_document
from appliance.sql.model import dry_run
from appliance.status.model.document import document
from appliance.status.model.snapshot import AuditStatus, Snapshot
from appliance.status.model.topic_status import BlockingTransaction
from appliance.verify.model.report import PartitionResult, VerificationReport
from tests.support.facts import NOW, complete
from tests.support.order_facts import order_view

_FAULT = Fault("why", NOW)
_STATE = StateRecord("payments", CopyState.PROMOTED, NOW, "me@vm")


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
        replicators_unknown=_FAULT,
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
    found_at = Line("orange", "a", 0, 1, "grape", "b", 0, 1, TranslationState.EXACT, 0, "")
    order = order_document(order_view())
    order["problems"] = [{"subject": "", "reason": "", "remedies": []}]
    found = {
        "status": document(status()),
        "doctor": json.loads(diagnosis.as_json()),
        "verify": json.loads(verified.as_json()),
        "promote, failover, pause": promoted.document(),
        "offsets translate": [asdict(offset)],
        "offsets build": [asdict(MapOutcome("a", 0, "built", 1, 2))],
        **of_copies(),
        "order status": order,
        "order origin": [asdict(found_at)],
    }
    plain: Mapping[str, Any] = json.loads(json.dumps(found))
    return plain


def of_copies() -> Mapping[str, Any]:
    """Documents of the commands that compare or change copies."""
    kept = {"b": CopyState.PAUSED}
    copy = GivenUpCopy("a", "b", there=True)
    link = "replicator-orange"
    returned = ReturnedPartition("a", 0, (1, 2), 1, (1, 2), (1, 2), 1, "c")
    change = moved(Replica("a", 0, "b", UUID(int=1), UUID(int=2)), None, SourcePlace(0, 3))
    return {
        **comparisons(),
        "failback": FailbackReport(link, False, ("a",), kept, (returned,), {"GROUP": ""}).document(),
        "reset": ResetReport(link, changes=[change], paused=["a"]).document(),
        "lanes": lanes(),
        "rm-topic": RemovalReport(link, removed=(copy,)).document(),
        "link delete": DeletionReport(link, topics=("a",), source_topics=("a",), copies=(copy,)).document(),
    }


def lanes() -> Mapping[str, Any]:
    """The document of a change of the lanes that moves a partition."""
    partition = Partition("a", 0)
    loads = Loads({partition: 1.0}, 60.0)
    return LanesReport("replicator-orange", Layout(1), Layout(2, placed={partition: 1}), loads).document()


def comparisons() -> Mapping[str, Any]:
    """Documents of the commands that show differences, with the names in capitals."""
    lacks = ConfigDiff({"COPY": {"SETTING": "1"}}, {"TOPIC": {"SETTING": "why"}}, {"TOPIC": BrokerBusy("why", "")})
    lacks.unchanged = {"TOPIC": "why"}
    entry = AccessControlEntry(AclPermission.DENY, "", "", AclOperation.READ)
    some = {"COPY": frozenset({entry})}
    of_acls = acls.as_document(
        AclDiff({"a": CopiedAcls(left_out=frozenset({entry}))}, AclChanges(some, some)), follows=True
    )
    record = Record(0, 0, body(b"key", b"value", [("name", b"value")]))
    tried = dry_run.Tried(Partition("a", 0), record, record)
    return {
        "configs": configs.as_document(lacks, {}, follows=True),
        "acls": {**of_acls, "left_out": {"ACL": ["a"]}},
        "transform": json.loads(dry_run.as_json("digest", [tried])),
    }
