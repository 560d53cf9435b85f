"""The decision of a start, by the facts of the link."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from appliance.driver.model.link_facts import LinkFacts, Step
from appliance.errors import LayoutChanging, LinkRefused
from appliance.link.model.checkpoint import LaneCheckpoint, LinkRecord
from appliance.link.model.claims import Claim
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.link_check import PositionsTopic
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Suffix

NAMING = Naming("replicator-orange", Suffix(after=".copy"), re.compile("orders"), re.compile(""))
MADE = LinkRecord("source", 2, 2, 0, "")


def facts(link: LinkRecord | None = MADE, layout: LayoutRecord | None = None, **changed: Any) -> LinkFacts:
    """The facts of a link of two lanes."""
    checkpoints = LaneCheckpoint(link=link, layout=layout), LaneCheckpoint()
    usual = LinkFacts(PositionsTopic("positions", "compact", checkpoints), "compact", None, (), (), "source", None)
    return replace(usual, **changed)


def changing(**changed: str) -> LayoutRecord:
    return LayoutRecord(1, 2, 0, "me@host", changing=True, **changed)


@pytest.mark.parametrize(
    ("known", "step"),
    [
        (facts(None), Step.MAKE),
        (facts(), Step.CONTINUE),
        (facts(layout=changing(run="killed")), Step.END_CHANGE),
    ],
)
def test_a_start_makes_continues_or_first_ends_what_a_killed_replicator_has_left(known: LinkFacts, step: Step) -> None:
    assert known.next_step(NAMING) is step


@pytest.mark.parametrize(
    "known", [facts(layout=changing()), facts(None, changing(run="killed"))], ids=["a command", "no link record"]
)
def test_a_start_waits_for_a_change_of_the_layout_that_it_must_not_end(known: LinkFacts) -> None:
    with pytest.raises(LayoutChanging, match="the lanes of the link are being changed, by me@host"):
        known.next_step(NAMING)


DELETED = Claim("replicator-orange", 0, deleted_by="me@host")

FAULTS: Mapping[str, dict[str, Any]] = {
    "replicator-registry has cleanup.policy=delete": {"registry_policy": "delete", "deletion": DELETED},
    "replicator-orange was deleted by me@host": {"deletion": DELETED, "producers_policies": ["delete"]},
    "replicator-producers has cleanup.policy=delete": {"producers_policies": ["compact", "delete"]},
    "the link was made with source cluster source": {"source_cluster": "lemon"},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_start_is_refused_by_the_first_fault(fault: str) -> None:
    with pytest.raises(LinkRefused, match=f"^{fault}"):
        facts(**FAULTS[fault]).next_step(NAMING)
