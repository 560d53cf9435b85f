"""The groups as they were seen last, shared by whoever looks at them and whoever shows them."""

from collections.abc import Iterable
from dataclasses import dataclass

from appliance.errors import ApplianceError
from appliance.failover.model.group_plan import GroupPlan


@dataclass(slots=True)
class NewestGroups:
    """The groups of a link; ``problem`` says why they are not known as they are now, and is empty when they are."""

    plans: tuple[GroupPlan, ...] = ()
    problem: str = "nobody has looked at the groups yet"

    def seen(self, plans: Iterable[GroupPlan], failures: Iterable[ApplianceError]) -> None:
        """Note what was seen, and the failures of what could not be."""
        self.plans = tuple(plans)
        self.problem = "; ".join(dict.fromkeys(map(str, failures)))

    def unseen(self, error: ApplianceError) -> None:
        """Note that nothing could be seen: what was seen last stays."""
        self.problem = str(error)
