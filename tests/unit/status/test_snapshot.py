import pytest

from appliance.status.model.snapshot import LinkState, total
from tests.support.facts import SILENT, snapshot


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    assert total([1, 2]) == 3
    assert total([1, None, 2]) is None
    assert total([]) is None


def test_only_what_is_copied_or_being_copied_is_well() -> None:
    assert {state for state in LinkState if state.well} == {LinkState.COPIED, LinkState.COPYING}


@pytest.mark.parametrize("silent", ["source", "destination"])
def test_a_topic_is_as_unknown_as_its_partitions(silent: str) -> None:
    (topic,) = snapshot(**{silent: SILENT}).topics
    assert (topic.lag_records, topic.lag_seconds) == (None, None)
