import io
import uuid
from dataclasses import replace

from rich.console import Console

from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.kafka.protocol.metadata import Partition, Topic
from appliance.link.model.checkpoint import Owner
from appliance.link.model.copy_states import CopyState
from appliance.link.model.link_sql import LinkSql, SqlChange
from appliance.link.model.mirror_records import Heartbeat
from appliance.link.model.problems import Fault
from appliance.status.model.facts import DestinationFacts, Log, SourceFacts
from appliance.status.model.snapshot import Snapshot
from appliance.status.model.state_words import (
    partition_state,
    partition_states,
    replicators,
    topic_state,
    topic_summary,
)
from appliance.status.model.table import rendered
from tests.support.facts import (
    DESTINATION,
    MEMBERS,
    NOW,
    PAYMENTS,
    RUN,
    SILENT,
    SOURCE,
    metadata,
    positions_topic,
    snapshot,
    with_logs,
    with_position,
    with_sql,
)

KEY = Partition("payments", 0)


def printed(taken: Snapshot, width: int = 1000) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width).print(rendered(taken))
    return stream.getvalue()


def cells(text: str, first: str) -> list[str]:
    """The row of a table that begins with this cell."""
    (row,) = [line for line in text.splitlines() if line.startswith(f"│ {first} ")]
    return [cell.strip() for cell in row.strip("│").split("│")]


def test_the_first_lines_say_the_state_both_clusters_and_who_has_which_lanes() -> None:
    other = Owner("4d5e6f", "worker", "other-vm", NOW)
    owned = replace(DESTINATION, topic=positions_topic(4, 4), owners=(RUN, RUN, other, None))
    text = printed(snapshot(destination=owned))
    assert text.splitlines()[:7] == [
        "replicator-orange: copied at 2027-01-15T08:00:00.000Z",
        "source cluster orange: answers",
        "destination cluster grape: answers",
        replicators(MEMBERS),
        "lanes 0 to 1: run 1a2b3c on grape-vm since 2027-01-15T07:59:00.000Z",
        "lane 2: run 4d5e6f on other-vm since 2027-01-15T08:00:00.000Z",
        "lane 3: nobody has taken it yet",
    ]


def test_a_bounded_link_says_so() -> None:
    assert "bounded" not in printed(snapshot())
    assert "\nbounded at 5,000,000 bytes/s\n" in printed(snapshot(MAX_BYTES_PER_SECOND="5000000"))


def test_a_topic_that_is_copied_is_one_row_and_no_partition_is_shown() -> None:
    earlier = snapshot(now=NOW - 1000)
    text = printed(snapshot(destination=with_position(records=1090), previous=earlier))
    assert cells(text, "payments") == ["payments", "payments.copy", "2", "1,180", "1,000", "0", "0.0", "copied"]
    assert "payments-0" not in text


def test_a_partition_that_is_behind_is_shown() -> None:
    behind = with_logs({KEY: Log(-1, 1300, 1300)})
    text = printed(snapshot(behind, previous=snapshot(behind, now=NOW - 15_000)))
    assert cells(text, "payments-0")[2:7] == ["100", "1,300", "1,200", "15.0", "0"]
    assert cells(text, "payments")[-1] == "copying"
    assert "payments-1" not in text


def test_a_stopped_partition_and_a_held_one_are_shown_with_a_line_each() -> None:
    holding = {Partition("payments", 1): OpenTransaction(100, 7, "till-3", NOW)}
    source = replace(with_logs({Partition("payments", 1): Log(-1, 100, 130)}), holding=holding)
    text = printed(snapshot(source, with_position(stopped="too large", stopped_at=NOW)))
    assert cells(text, "payments")[-1] == "1 stopped, 1 held by a transaction"
    assert cells(text, "payments-0")[-1] == "stopped"
    assert cells(text, "payments-1")[-1] == "held by a transaction"
    assert "\npayments-0: stopped since 2027-01-15T08:00:00.000Z: too large\n" in text
    assert "wait for a transaction of till-3" in text


def test_a_state_is_the_same_one_at_the_terminal_and_on_the_page() -> None:
    (topic,) = snapshot(replace(SOURCE, holding={KEY: OpenTransaction(100, 7, "t", NOW)})).topics
    assert (topic_state(topic), topic_summary(topic)) == ("held", "1 held by a transaction")
    gone = replace(topic, active=False)
    assert (topic_state(gone), topic_summary(gone)) == ("gone", "no longer copied")
    (partition, _) = topic.partitions
    assert partition_state(replace(partition, unknown=Fault("no leader", NOW))) == "unknown"


def test_case_1475_the_totals_count_each_partition_of_a_paused_topic_by_itself() -> None:
    # One stopped partition of a paused topic of twelve was counted as "12 stopped".
    (topic,) = snapshot().topics
    first, second = topic.partitions
    of = replace(topic, state=CopyState.PAUSED, partitions=(replace(first, stopped=Fault("a gap", NOW)), second))
    assert partition_states(of) == ["stopped", "paused"]
    assert partition_states(replace(of, active=False)) == ["gone", "gone"]
    assert partition_states(replace(of, stopped=Fault("no copy", NOW))) == ["stopped", "stopped"]


def test_an_unknown_value_is_never_shown_as_0() -> None:
    text = printed(snapshot(destination=SILENT))
    assert cells(text, "payments") == ["payments", "payments.copy", "2", *["unknown"] * 4, "2 unknown"]
    assert f"destination cluster grape: unknown since 2027-01-15T08:00:00.000Z: {SILENT}" in text
    assert "0" not in [cell for line in text.splitlines() if line.startswith("│") for cell in line.split()]


def test_a_link_that_never_ran_says_so() -> None:
    assert "never run" in printed(snapshot(destination=DestinationFacts(metadata()))).splitlines()[0]


def test_a_link_with_thousands_of_partitions_can_still_be_read() -> None:
    wide = replace(PAYMENTS, leaders=(1,) * 5000)
    logs = {Partition("payments", n): Log(0, 100, 100) for n in range(5000)}
    few = replace(DESTINATION, metadata=metadata(Topic("payments.copy", uuid.UUID(int=2), False, (1,) * 5000)))
    text = printed(snapshot(SourceFacts(metadata(wide), logs), few))
    assert len(text.splitlines()) < 60
    assert "4,978 partitions more" in text


def test_a_clients_name_cannot_write_to_the_terminal() -> None:
    transaction = OpenTransaction(100, 7, "\x1b[2J\nfake: copied", NOW)
    text = printed(snapshot(replace(with_logs({KEY: Log(-1, 100, 130)}), holding={KEY: transaction})))
    assert "\x1b" not in text
    assert "\nfake" not in text


def test_nothing_is_lost_in_a_narrow_terminal() -> None:
    text = printed(snapshot(destination=with_position(stopped="raise its max.message.bytes", stopped_at=NOW)), 60)
    assert "max.message.bytes" in text.replace("\n", "")


def test_the_measured_way_from_source_to_destination_is_shown_in_milliseconds() -> None:
    beaten = replace(DESTINATION, heartbeat=Heartbeat("orange", "grape", NOW - 500, 1234))
    shown = printed(snapshot(destination=beaten))
    assert "from source to destination: 1,234 ms, heartbeat of 2027-01-15T07:59:59.500Z" in shown
    unmeasured = replace(DESTINATION, heartbeat=Heartbeat("orange", "grape", NOW))
    assert "from source to destination: unknown" in printed(snapshot(destination=unmeasured))
    assert "from source to destination" not in printed(snapshot())
    assert "from source to destination" not in printed(snapshot(destination=SILENT))


def test_the_sql_is_a_line_with_its_digest_and_since_when() -> None:
    sql = LinkSql(1, "SELECT 1")
    shown = printed(snapshot(destination=with_sql(SqlChange(sql, "1a2b", 3, NOW))))
    assert f"SQL {sql.digest[:12]} since 2027-01-15T08:00:00.000Z by run 1a2b" in shown
    shown = printed(snapshot(destination=with_sql(SqlChange(LinkSql(2), "1a2b", 3, NOW))))
    assert "records are copied as they are since 2027-01-15T08:00:00.000Z by run 1a2b" in shown
