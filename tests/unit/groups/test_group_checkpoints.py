import pytest

from appliance.groups.model.group_plan import GroupPlan, PartitionPlan, checkpoints
from appliance.kafka.client.group_offsets import Commit
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.mirror_records import MirrorCheckpoint
from appliance.link.model.translation import Translation, TranslationState


def group(*translations: Translation) -> GroupPlan:
    """A group with offset 50 in source partitions that have these translations."""
    partitions = (
        PartitionPlan(Partition("orders", n), Partition("orange.orders", n), Commit(50, "note", 3), translation)
        for n, translation in enumerate(translations)
    )
    return GroupPlan("billing", "classic", tuple(partitions))


@pytest.mark.parametrize(
    ("translation", "offsets"),
    [
        (Translation(70, TranslationState.EXACT), (50, 70)),
        (Translation(65, TranslationState.AHEAD, 12), (38, 65)),  # at the copy's end both offsets are exact
    ],
)
def test_an_offset_that_is_known_becomes_a_checkpoint(translation: Translation, offsets: tuple[int, int]) -> None:
    assert list(checkpoints([group(translation)])) == [
        MirrorCheckpoint("billing", Partition("orange.orders", 0), *offsets, "note")
    ]


@pytest.mark.parametrize(
    "translation",
    [
        Translation(None, TranslationState.UNKNOWN),
        Translation(0, TranslationState.UNKNOWN),
        Translation(None, TranslationState.AHEAD, 12),
    ],
)
def test_of_an_offset_that_is_not_known_there_is_no_checkpoint(translation: Translation) -> None:
    assert list(checkpoints([group(translation)])) == []


def test_every_partition_of_every_group_has_its_own_whatever_keeps_the_group_from_a_commit() -> None:
    exact = Translation(70, TranslationState.EXACT)
    both = [
        group(exact, exact),
        GroupPlan("b", "classic", group(exact).partitions, there=True, refused="not permitted"),
    ]
    found = [(each.group, each.copy[1]) for each in checkpoints(both)]
    assert found == [("billing", 0), ("billing", 1), ("b", 0)]
