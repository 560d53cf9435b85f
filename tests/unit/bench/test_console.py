from bench.cases.console import rows
from bench.lib.footprint import Cost
from bench.lib.row import LIMIT


def test_the_medians_stand_beside_each_other_and_the_worst_costs_beside_their_limits() -> None:
    found = rows([100, 300, 200], [190, 10, 400], Cost(memory=70, processor=0.5), [(0.1, 200_000), (0.3, 90_000)])
    assert [(row.name, row.ours, row.peer) for row in found] == [
        ("rate beside viewers", 190, 200),
        ("idle control center", 0.5, 1),
        ("memory of it", 70, 80),
        ("slowest page of many partitions", 0.3, 1),
        ("largest page", 200, 500),
    ]
    assert {row.peer_name for row in found[1:]} == {LIMIT}
