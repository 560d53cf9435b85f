from collections.abc import Callable, Collection

import pytest

from appliance.kafka.client.config_filter import search

WANTED = ("cleanup.policy", "segment.bytes", "retention.ms", "confluent.tier")


async def searched(
    policy: Callable[[Collection[str]], str], required: Collection[str] = ()
) -> tuple[list[str], dict[str, str], int]:
    """The result of a search in a cluster with this policy, and its number of requests."""
    asked = []

    async def refusal(keys: Collection[str]) -> str:
        asked.append(keys)
        return policy(keys)

    return *await search(WANTED, required, refusal), len(asked)


@pytest.mark.parametrize("refused", [("segment.bytes",), ("retention.ms", "confluent.tier"), WANTED])
async def test_each_setting_that_is_refused_is_found_with_the_brokers_words(refused: tuple[str, ...]) -> None:
    kept = [key for key in WANTED if key not in refused]
    found = await searched(lambda keys: ", ".join(f"no {key}" for key in keys if key in refused))
    assert found == (kept, {key: f"no {key}" for key in refused}, len(WANTED))


async def test_required_settings_are_in_every_question_and_are_not_asked_for_alone() -> None:
    found = await searched(lambda keys: "" if keys[0] == "retention.ms" else "required", {"retention.ms"})
    assert found == (["retention.ms", "cleanup.policy", "segment.bytes", "confluent.tier"], {}, 3)


async def test_of_two_settings_that_are_refused_together_the_first_is_kept() -> None:
    found = await searched(lambda keys: "not both" if {"segment.bytes", "retention.ms"} <= set(keys) else "")
    assert found == (["cleanup.policy", "segment.bytes", "confluent.tier"], {"retention.ms": "not both"}, 4)
