import importlib
import re
import shlex
from pathlib import Path

import pytest

import appliance.program
from appliance import command_line, errors
from appliance.errors import CopyShortened, GapFound, PartitionStopped, ProducersLost, RanksDeleted
from appliance.link.model.stops import FOLLOWING, Stop, StopKind
from deploy.monitoring.alerts import ALERTS, TOPIC
from deploy.render.compose import DESTINATION_VM
from tests.support.rendering import compose

DOCS = Path(__file__).parents[3] / "docs"


def test_case_847_what_is_printed_in_a_container_is_typed_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # The page in its container printed bin/appliance, which is not on the VM.
    program = compose(DESTINATION_VM)["x-service"]["environment"]["APPLIANCE_PROGRAM"]
    monkeypatch.setenv("APPLIANCE_PROGRAM", program)
    inside = importlib.reload(appliance.program)
    assert (inside.PROGRAM, inside.DOCTOR) == (inside.IN_CONTAINER, "docker-compose run --rm doctor")
    monkeypatch.delenv("APPLIANCE_PROGRAM")
    outside = importlib.reload(appliance.program)
    assert (outside.PROGRAM, outside.DOCTOR) == ("bin/appliance", "bin/appliance doctor destination")


def test_case_1030_a_long_refusal_keeps_its_remedies_and_the_offset_that_follows() -> None:
    text = f"orders-0 offset 5 is refused: {'x' * 1_200_000}; raise max.message.bytes of orders; {FOLLOWING} 600"
    stop = Stop(str(PartitionStopped(text)), "orders", 0, 5)
    assert len(stop.reason) < 2_000
    assert stop.kind is StopKind.REFUSED
    assert any("600" in remedy.arguments for remedy in stop.remedies)


@pytest.mark.parametrize("kind", StopKind, ids=lambda kind: kind.name)
def test_the_docs_have_the_remedies_that_are_printed(kind: StopKind) -> None:
    words = {
        "topic": "--topic-name=T",
        "partition": "N",
        **dict.fromkeys(("position", "following", "diverged"), "OFFSET"),
    }
    printed = [(each.effect.format(**words), each.arguments.format(**words)) for each in kind.remedies]
    wanted = [f"- {effect[0].upper()}{effect[1:]}: `bin/appliance {command}`\n" for effect, command in printed]
    of_the_kind = [section for section in sections() if kind.words.strip() in section]
    assert any(all(each in section for each in wanted) for section in of_the_kind), wanted


SECTION_OF: dict[type[PartitionStopped], str] = {
    PartitionStopped: "When a partition stops",
    CopyShortened: "The copy has lost records",
    GapFound: "Deleted before it was copied",
    ProducersLost: "Writers unknown",
    RanksDeleted: "A total order",
}


def test_the_docs_have_a_section_for_each_class_of_stops() -> None:
    titles = {section.partition("\n")[0] for section in sections()}
    classes = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, PartitionStopped)}
    assert SECTION_OF.keys() == classes
    assert set(SECTION_OF.values()) - {"When a partition stops"} <= titles


def sections() -> list[str]:
    """The sections of the page of stops, each with its title in the first line."""
    return (DOCS / "night" / "stops.md").read_text().split("\n## ")[1:]


def test_the_alerts_of_stops_print_commands_that_exist() -> None:
    for name in ("KafkaReplicatorPartitionStopped", "KafkaReplicatorTopicStopped"):
        (alert,) = [each for each in ALERTS if each.name == name]
        commands = re.findall(f"`{appliance.program.IN_CONTAINER} (.*?)`", alert.description.replace(TOPIC, "t"))
        assert commands
        for words in map(shlex.split, commands):
            parsed = command_line.parser(words[0], command_line.command(words[0])).parse_args(words)
            assert parsed.topic or parsed.topic_name


@pytest.mark.parametrize(
    ("reason", "command"),
    [
        ("t-0 offset 5 is refused: MESSAGE_TOO_LARGE; what follows begins at offset 9", "--from 9"),
        ("t-0 offset 5 is refused: MESSAGE_TOO_LARGE", "--from 6"),
        ("t-0 offset 7 fails in the SQL of REPLICA_TRANSFORM_SQL_FILE: no number", "--from 8"),
        ("t-0 from offset 3: a record of the batch at offset 3 does not fit its length", "--from OFFSET"),
    ],
)
def test_an_offset_is_named_where_the_reason_has_it_also_of_an_older_release(reason: str, command: str) -> None:
    assert Stop(reason, "t", 0, 5).remedies[-1].arguments == f"resume --topic-name=t --partition 0 {command}"


@pytest.mark.parametrize("words", [*(kind.words for kind in StopKind if kind.words), f"{FOLLOWING} 900000"])
@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("t-0 offset 50 fails in the SQL of REPLICA_TRANSFORM_SQL_FILE: the value", StopKind.NOT_TRANSFORMED),
        ("t-0 offset 50 is damaged:", StopKind.UNREADABLE),
        ("t-0 offset 50 is refused: INVALID_RECORD", StopKind.REFUSED),
        ("t-0 from offset 50: who wrote its batches is not known:", StopKind.WRITERS_UNKNOWN),
        ("t-0 from offset 50: the batch at offset 51 does not fit:", StopKind.UNREADABLE),
    ],
)
def test_case_910_what_a_reason_quotes_chooses_no_remedy(head: str, kind: StopKind, words: str) -> None:
    # The value of a record that the SQL failed on had any remedy printed, and any offset named.
    stop = Stop(f"{head} '{words}' is none", "t", 0, 50)
    assert stop.kind is kind
    assert "900000" not in stop.remedies[-1].arguments


@pytest.mark.parametrize(
    "reason", ["t-0 offset {} is damaged", f"t-0: {FOLLOWING} {{}}", "t-0: copied: offsets {} to 5"]
)
def test_case_1061_a_number_that_is_no_offset_is_none_and_ends_no_view(reason: str) -> None:
    # A position that others had written with a reason of 5,000 digits ended the status, and each page, with ValueError.
    remedies = Stop(reason.format("1" * 5000), "t", 0, 5).remedies
    assert remedies[-1].arguments == "resume --topic-name=t --partition 0 --from OFFSET"


def test_a_record_that_ends_as_a_reason_does_names_no_offset() -> None:
    reason = f"t-0 offset 50 fails in the SQL of REPLICA_TRANSFORM_SQL_FILE: {FOLLOWING} 900000"
    assert Stop(reason, "t", 0, 50).remedies[-1].arguments.endswith("--from 51")


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("t-0: the source's log was truncated: it ends before 10, which was copied", StopKind.TRUNCATED),
        ("source topic t was deleted and made anew", StopKind.RECREATED),
        ("t-0: destination topic t.copy was deleted and made anew since it was copied", StopKind.RECREATED),
        ("t.copy-0 has lost what it had acknowledged, offsets 4 to 9 of the copy: copy it again by", StopKind.LOST),
        ("t.copy-0 holds records from offset 4 on that no position accounts for: the positions", StopKind.UNACCOUNTED),
    ],
)
def test_a_reason_of_an_older_release_has_its_kind(reason: str, kind: StopKind) -> None:
    assert Stop(reason, "t", 0, 5).kind is kind
