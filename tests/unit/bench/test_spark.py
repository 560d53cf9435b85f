"""The rows of the Spark benchmark, from its rates."""

from bench.cases.spark import rows
from bench.lib.row import Row


def test_each_way_is_beside_two_tasks_in_local_mode() -> None:
    rates = {"1 task": [100.0, 90.0, 95.0], "2 tasks": [180.0, 200.0], "cluster": [170.0]}
    assert rows(rates) == [
        Row("speed of 1 task", "records/s", 95.0, "2 tasks, local mode", 190.0),
        Row("speed of cluster", "records/s", 170.0, "2 tasks, local mode", 190.0),
    ]
