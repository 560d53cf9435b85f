"""The rows of the benchmark of verifications, from its rates."""

from bench.cases.verify import rows
from bench.lib.row import Row


def test_each_way_is_beside_one_process_with_the_same_topic() -> None:
    rates = {
        ("four partitions", "one process"): [100.0, 90.0, 95.0],
        ("four partitions", "2 tasks"): [180.0, 160.0],
        ("one partition", "one process"): [80.0],
        ("one partition", "2 workers"): [120.0],
    }
    assert rows(rates) == [
        Row("verify four partitions: 2 tasks", "records/s", 170.0, "one process", 95.0),
        Row("verify one partition: 2 workers", "records/s", 120.0, "one process", 80.0),
    ]
