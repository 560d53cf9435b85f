"""Rows as they are printed."""

import io
import json

import pytest
from rich.console import Console

from bench.lib.row import Row, as_json, as_table, from_json

SPEED = Row("speed", "records/s", 1_234_567.0, "MirrorMaker 2", 100_000.0, goal=12.0)
IDLE = Row("idle Python", "% of a core", 1.25, "limit", 5.0)


def test_the_ratio_is_ours_to_the_peers_for_rates_and_costs_alike() -> None:
    assert (SPEED.ratio, IDLE.ratio) == (12.34567, 0.25)


def test_nothing_beside_nothing_is_1() -> None:
    assert Row("missed", "records", 0, "MirrorMaker 2", 0).ratio == 1


def test_json_has_every_key_of_every_row() -> None:
    assert json.loads(as_json([SPEED, IDLE], {"machine": "2 cores"})) == {
        "rows": [
            {
                "name": "speed",
                "unit": "records/s",
                "ours": 1_234_567.0,
                "peer_name": "MirrorMaker 2",
                "peer": 100_000.0,
                "ratio": 12.346,
                "goal": 12.0,
            },
            {
                "name": "idle Python",
                "unit": "% of a core",
                "ours": 1.25,
                "peer_name": "limit",
                "peer": 5.0,
                "ratio": 0.25,
                "goal": None,
            },
        ],
        "setup": {"machine": "2 cores"},
    }


def test_rows_that_were_printed_as_json_are_read_again() -> None:
    assert from_json(as_json([SPEED, IDLE])) == [SPEED, IDLE]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": 3}', '{"rows": [{"name": "speed"}]}', '{"rows": [1]}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        from_json(text)


def test_the_table_fits_a_terminal_and_shows_each_figure_beside_its_peers() -> None:
    text = io.StringIO()
    Console(file=text, width=80).print(as_table([SPEED, IDLE]))
    for cell in (
        "speed, records/s",
        "1,234,567",
        "MirrorMaker 2 100,000",
        "12.35",
        "12",
        "idle Python, % of a core",
        "limit 5",
    ):
        assert cell in text.getvalue()
