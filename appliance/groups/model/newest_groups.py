"""The last seen groups, and the sentences about states that an operator should know."""

from collections.abc import Iterable
from dataclasses import dataclass

from appliance.errors import ApplianceError
from appliance.grouping import grouped
from appliance.groups.model.group_plan import GroupPlan, GroupState
from appliance.listing import some

_NAMED = 5
"""Number of groups of a state that are named; the others are counted."""

_SENTENCES = {
    GroupState.REFUSED: "not committed at the destination: {reason}",
    GroupState.BOTH: "consumed on both sides: what they commit at the destination is not overwritten",
    GroupState.UNKNOWN: "some of their offsets are not known in the copies, so those are not committed{detail}",
    GroupState.FURTHER: "further at the destination than at the source: commits never move backwards",
}


def sentences(groups: Iterable[GroupPlan]) -> dict[GroupState, str]:
    """The log texts about groups, by their state; none about synced or migrated ones."""
    by_state = grouped((group.state, group) for group in groups if group.state in _SENTENCES)
    return {state: f"{_names(some)}: {_sentence(state, some)}" for state, some in by_state.items()}


def _sentence(state: GroupState, groups: list[GroupPlan]) -> str:
    reason = next((group.reason for group in groups if group.reason), "")
    return _SENTENCES[state].format(reason=reason, detail=f" ({reason})" if reason else "")


def _names(groups: list[GroupPlan]) -> str:
    return f"group{'s' if len(groups) > 1 else ''} {some([group.name for group in groups], _NAMED)}"


@dataclass(slots=True)
class NewestGroups:
    """The groups of a link; ``problem`` is the reason that they are out of date, empty if they are current."""

    plans: tuple[GroupPlan, ...] = ()
    problem: str = "nobody has looked at the groups yet"

    def seen(self, plans: Iterable[GroupPlan], failures: Iterable[ApplianceError]) -> None:
        """Note the seen groups, and the failures of the others."""
        self.plans = tuple(plans)
        self.problem = "; ".join(dict.fromkeys(map(str, failures)))

    def unseen(self, error: Exception) -> None:
        """Note that nothing was visible: the last seen groups stay."""
        expected = isinstance(error, ApplianceError)
        self.problem = str(error) if expected else f"unexpected {type(error).__name__}: {error}"
