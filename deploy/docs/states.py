"""Draws the states of a lane and of a copy from the code's own tables: ``python -m deploy.docs.states``.

The drawings stand in docs/why/exactly-once.md and docs/night/failover.md; a test compares.
"""

import enum
from collections.abc import Mapping
from typing import TypeVar

from appliance.link.model.copy_states import COPY
from appliance.link.model.states import LANE

_State = TypeVar("_State", bound=enum.Enum)
_Event = TypeVar("_Event", bound=enum.Enum)


def drawing(table: Mapping[_State, Mapping[_Event, _State]]) -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    first = next(iter(table))
    lines.append(f"    [*] --> {_id(first)}")
    for state, moves in table.items():
        lines += [f"    {_id(state)} --> {_id(to)}: {event.value}" for event, to in moves.items() if to is not state]
    lines += [f"    {_id(state)} --> [*]" for state, moves in table.items() if not set(moves.values()) - {state}]
    return "\n".join(lines)


def _id(state: enum.Enum) -> str:
    return str(state.value).replace(" ", "_")


if __name__ == "__main__":
    for text in (drawing(LANE), drawing(COPY)):
        print(f"```mermaid\n{text}\n```")
