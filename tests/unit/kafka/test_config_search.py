from collections.abc import Collection

import pytest

from appliance.kafka.protocol.config_search import Ask, Refused, Settled, next_step

WANTED = ("cleanup.policy", "segment.bytes", "retention.ms", "confluent.tier")


def search(
    wanted: Collection[str], refused: Collection[str], required: Collection[str] = ()
) -> tuple[Settled | Refused, int]:
    """The end of a search in a cluster that refuses these settings, and its number of requests."""
    answers: list[str] = []
    while isinstance(step := next_step(tuple(wanted), required, answers), Ask):
        answers.append(", ".join(f"no {key}" for key in step.keys if key in refused))
    return step, len(answers)


def test_settings_that_are_taken_together_cost_one_question() -> None:
    assert search(WANTED, ()) == (Settled(WANTED, {}), 1)


@pytest.mark.parametrize("refused", [("segment.bytes",), ("retention.ms", "confluent.tier"), WANTED])
def test_each_setting_that_is_refused_is_found_with_the_brokers_words(refused: tuple[str, ...]) -> None:
    kept = tuple(key for key in WANTED if key not in refused)
    end, asked = search(WANTED, refused)
    assert end == Settled(kept, {key: f"no {key}" for key in refused})
    assert asked == 2 + len(WANTED)


def test_required_settings_are_asked_for_first_and_their_refusal_is_the_end() -> None:
    assert next_step(WANTED, {"cleanup.policy"}, ["no"]) == Ask(("cleanup.policy",))
    assert search(WANTED, ("cleanup.policy",), {"cleanup.policy"}) == (Refused("no cleanup.policy"), 2)


def test_a_topic_that_is_refused_whatever_its_settings_is_refused_after_two_questions() -> None:
    assert next_step(WANTED, (), ["the name", "the name"]) == Refused("the name")


def test_of_two_settings_that_are_refused_together_the_first_is_kept() -> None:
    answers: list[str] = []
    while isinstance(step := next_step(WANTED, (), answers), Ask):
        answers.append("not both" if {"segment.bytes", "retention.ms"} <= set(step.keys) else "")
    assert step == Settled(("cleanup.policy", "segment.bytes", "confluent.tier"), {"retention.ms": "not both"})
