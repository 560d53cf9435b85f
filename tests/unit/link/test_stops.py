import importlib
import re
import shlex
from pathlib import Path

import pytest

import appliance.program
from appliance import cli
from appliance.link.model.stops import Stop, StopKind
from deploy.monitoring.alerts import ALERTS

DOCS = Path(__file__).parents[3] / "docs"


def test_case_847_what_is_printed_in_a_container_is_typed_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # The page in its container printed bin/appliance, which is not on the VM.
    compose = (DOCS.parent / "docker-compose.yml").read_text()
    (program,) = re.findall(r"APPLIANCE_PROGRAM: (.*)", compose)
    monkeypatch.setenv("APPLIANCE_PROGRAM", program)
    inside = importlib.reload(appliance.program)
    assert (inside.PROGRAM, inside.DOCTOR) == (inside.IN_CONTAINER, "docker-compose run --rm doctor")
    monkeypatch.delenv("APPLIANCE_PROGRAM")
    outside = importlib.reload(appliance.program)
    assert (outside.PROGRAM, outside.DOCTOR) == ("bin/appliance", "bin/appliance doctor destination")


@pytest.mark.parametrize("kind", StopKind, ids=lambda kind: kind.name)
def test_the_docs_have_the_remedies_that_are_printed(kind: StopKind) -> None:
    text = (DOCS / "exactly-once.md").read_text().split("## When a partition stops", 1)[1].split("\n## ", 1)[0]
    rows = [row for row in text.splitlines() if row.startswith("| ")]
    words = {
        "topic": "T",
        "regex": "T",
        "partition": "N",
        **dict.fromkeys(("position", "following", "diverged"), "OFFSET"),
    }
    wanted = [
        f"{each.effect.format(**words)}: `bin/appliance {each.arguments.format(**words)}`" for each in kind.remedies
    ]
    assert [row for row in rows if all(each.lower() in row.lower() for each in wanted)], wanted


def test_the_alerts_of_stops_print_commands_that_exist() -> None:
    for name in ("KafkaReplicatorPartitionStopped", "KafkaReplicatorTopicStopped"):
        (alert,) = [each for each in ALERTS if each.name == name]
        commands = re.findall(
            f"`{appliance.program.IN_CONTAINER} (.*?)`", alert.description.replace("{{ $labels.topic }}", "t")
        )
        assert commands
        for words in map(shlex.split, commands):
            assert cli._parser(words[0], cli.command(words[0])).parse_args(words).topic


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
    assert Stop(reason, "t", 0, 5).remedies[-1].arguments == f"resume --topic t --partition 0 {command}"
