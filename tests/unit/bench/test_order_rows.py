"""The rows of the order's benchmark."""

from bench.cases.order import _WAYS, latency_rows
from bench.lib.latency_figures import Figures
from bench.lib.row import Row


def test_each_way_of_a_record_stands_beside_the_link_over_the_same_line() -> None:
    ours = {way: Figures(10 * number, 20 * number, 30 * number) for number, way in enumerate(_WAYS, 1)}
    rows = latency_rows("no line", ours, Figures(5, 8, 9))
    assert rows[:2] == [
        Row("a spoke's record in its own T-global, p50, no line", "ms", 10, "a plain link", 5),
        Row("a spoke's record in its own T-global, p99, no line", "ms", 20, "a plain link", 8),
    ]
    assert len(rows) == 2 * len(_WAYS)
