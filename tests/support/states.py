"""States of a link's copies, changed as an operator's command does it."""

import uuid

from appliance.commands.run.link_lanes import LinkLanes, Subjects
from appliance.link.handle import Link
from appliance.link.model.copy_states import LINK, CopyEvent, CopyState, StateChange, StateRecord
from tests.support.engine import Engine


def link_states(engine: Engine, who: str = "me@host") -> LinkLanes:
    """The states, for one run of a command."""
    stamp = StateRecord(LINK, CopyState.ACTIVE, 0, who, "a test", uuid.uuid4().hex)
    return LinkLanes(Link(engine.source, engine.destination, engine.pair.naming), 30.0, stamp)


async def change_states(engine: Engine, event: CopyEvent, subjects: Subjects = None) -> StateChange:
    """A command of its own, from reading to the last lane."""
    states = link_states(engine)
    await states.read()
    return await states.change(subjects, event)
