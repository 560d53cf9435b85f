"""The last sync of groups before a promotion, of a sync whose rounds are made up."""

from collections.abc import Mapping
from typing import cast

import pytest

from appliance.commands.run import last_sync
from appliance.errors import ApplianceError, BrokerRefused
from appliance.groups.group_sync import GroupSync
from appliance.groups.model.group_plan import GroupPlan


class Rounds:
    """A link without groups, whose key may not see ``<replicator>.groups``."""

    plans: Mapping[str, GroupPlan] = {}
    stale: Mapping[str, ApplianceError] = {}
    failures: Mapping[str, ApplianceError] = {
        "the places of groups": BrokerRefused("read replicator-a.groups", "TOPIC_AUTHORIZATION_FAILED")
    }
    count = 0

    async def round(self) -> Mapping[str, GroupPlan]:
        self.count += 1
        return self.plans


@pytest.mark.asyncio
async def test_case_781_without_the_right_to_the_places_a_promotion_of_a_link_alone_still_knows_its_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It took half a minute, and then said that the source did not answer.
    monkeypatch.setattr(last_sync, "_SECONDS", 0.5)
    rounds = Rounds()
    assert await last_sync.settled(cast("GroupSync", rounds))
    assert rounds.count == 1
