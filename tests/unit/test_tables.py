"""Tables at terminals of any width: columns are hidden, and no word is broken."""

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from appliance.tables import cell, show, table, terminal
from tests.support.terminal import shown_at_terminal

LONG = "prod.europe-west1.payments.transactions.card-authorisations.enriched.v2"
words = st.text("abc", min_size=1, max_size=12)
cells = st.lists(words, min_size=1, max_size=5).map(" ".join)
STATUS = """
from dataclasses import replace
from appliance.kafka.protocol.metadata import Partition
from appliance.status.model.facts import Log
from appliance.status.model.table import rendered
from appliance.tables import show
from tests.support.facts import NOW, snapshot, with_logs, with_position
behind = with_logs({Partition("payments", 0): Log(-1, 1300, 1300)})
show(rendered(snapshot(behind, with_position(stopped="the record is too large", stopped_at=NOW))))
"""


def drawn(part: RenderableType, width: int) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width).print(part)
    return stream.getvalue().splitlines()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=4), st.integers(44, 200))
def test_every_width_has_whole_words(rows: list[tuple[str, str, str]], width: int) -> None:
    lines = drawn(table(("one", "two", "three"), rows), width)
    assert max(map(len, lines)) <= width
    shown = re.findall(r"[a-z]+", " ".join(lines))
    assert sorted(shown) == sorted(" ".join(["one two three", *map(" ".join, rows)]).split(" "))


def test_a_narrow_table_has_no_frame_and_then_hides_the_columns_that_matter_least() -> None:
    grid = table(("topic", "copy", "lag"), [["payments", "payments.copy", "1,200"]], right=("lag",), hide=("copy",))
    assert drawn(grid, 36)[1] == "┃ topic    ┃ copy          ┃   lag ┃"
    assert drawn(grid, 35)[0] == "topic     copy             lag"
    assert [line.rstrip() for line in drawn(grid, 29)] == [
        "topic       lag",
        "───────────────",
        "payments  1,200",
        "this width hides copy: --json",
        "has all",
    ]


def test_a_long_name_loses_its_middle_where_nothing_else_helps_and_is_whole_in_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid = table(("topic", "state"), [[LONG, "copied"], [f"{LONG[:-1]}3", "1 stopped, 1 held by a transaction"]])
    lines = drawn(grid, 60)
    assert [line.split("  ")[0] for line in lines[2:4]] == [
        "prod.europe-west1.pa…isations.enriched.v2",
        "prod.europe-west1.pa…isations.enriched.v3",
    ]
    assert lines[-1] == "this width cuts names: --json has all"
    show(grid)
    assert LONG in capsys.readouterr().out


def test_columns_says_the_width_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal(file=io.StringIO()).width == 1000
    monkeypatch.setenv("COLUMNS", "80")
    assert terminal(file=io.StringIO()).width == 80
    for nonsense in ("0", "-1", "\u00b2", "wide"):
        monkeypatch.setenv("COLUMNS", nonsense)
        assert terminal(file=io.StringIO()).width == 1000


def test_a_style_of_a_cell_stays() -> None:
    stream = io.StringIO()
    Console(file=stream, width=20, color_system="standard", force_terminal=True).print(
        table(("topic",), [[cell(LONG, style="red")]])
    )
    assert "\x1b[31mprod.euro" in stream.getvalue()


@pytest.mark.parametrize("columns", [80, 60])
def test_case_1460_status_at_a_narrow_terminal_breaks_no_word_of_its_tables(columns: int) -> None:
    # "records/s" and "unknown" went over two lines, and each row over three.
    lines = [line.rstrip() for line in shown_at_terminal(columns, "-c", STATUS)]
    assert max(len(line) for line in lines if "appliance resume" not in line) <= columns
    (topic,) = [line.split() for line in lines if line.startswith("payments ")]
    assert topic[-4:] == ["1,200", "unknown", "1", "stopped"]
    assert next(line for line in lines if line.startswith("payments-0 ")).endswith(" stopped")
    assert any(line.startswith("this width hides copy") for line in lines)
    assert "2 partitions: 1 stopped, 1 copied; lag 1,200" in lines


def test_case_1463_a_command_of_status_is_one_line_to_copy_at_a_narrow_terminal() -> None:
    # It was wrapped: pasted, its first line `bin/appliance resume` resumed the whole link.
    lines = shown_at_terminal(60, "-c", STATUS)
    assert "    bin/appliance resume --topic-name=payments --partition 0 --from OFFSET" in lines


@pytest.mark.parametrize("columns", [80, 60])
def test_the_doctor_fits_its_terminal(columns: int) -> None:
    lines = shown_at_terminal(columns, "-m", "appliance.cli", "doctor", "destination", "--env-file", "/dev/null")
    table_end = next(at for at, line in enumerate(lines) if line.startswith("this width hides") or "settings:" in line)
    assert max(len(line) for line in lines[:table_end]) <= columns
    assert sum("not reached" in line for line in lines) > 5


@pytest.mark.parametrize("columns", [80, 60])
def test_case_1461_the_bars_of_the_demo_break_no_word(columns: int) -> None:
    # "downloa/ded" and "200000/2/00000": every column was folded alike.
    code = (
        "from demo.display import display\n"
        "with display() as shown, shown.step('looking for Kafka, which is downloaded once on each machine', 200_000):\n"
        "    pass\n"
    )
    lines = [line for line in shown_at_terminal(columns, "-c", code) if line.strip()]
    assert max(map(len, lines)) <= columns
    shown = " ".join(lines).rpartition("looking")[2]
    for word in ("Kafka,", "downloaded", "machine", "200,000/200,000", "0:00:00"):
        assert word in shown
