"""A process that works while it is the active one of its group, and stands by otherwise."""

import asyncio
from collections.abc import Awaitable, Callable

from appliance.clock import loop_seconds
from appliance.errors import ApplianceError, Fenced
from appliance.link.client.membership import Membership
from appliance.runtime.background import unless_stopped

_STEADY = 60.0
"""Length of a run, in seconds, after which one that is fenced is no sign of a process outside of the group."""
_DISPLACED_MAX = 2
"""Number of shorter runs in a row that were fenced, from which it is one."""


async def goes_on(member: Membership, stopping: asyncio.Event, error: ApplianceError | None, began: float) -> bool:
    """True if the process stands by, or works again, after a run since ``began`` that ended with this error.

    A lane that another member has taken comes with an assignment of that member, which may be over already. One that
    still goes to this process was outdated: a member has worked, and is gone; or one that was cut off took a lane for a
    moment. The second time in a row, a process outside of the group works.
    """
    if not isinstance(error, Fenced) or member.refused is not None:
        return error is None
    await unless_stopped(stopping, member.confirm())
    explained = not member.active or member.turned > began or loop_seconds() >= began + _STEADY
    member.displaced = 0 if explained else member.displaced + 1
    return member.displaced < _DISPLACED_MAX


async def while_active(
    member: Membership, stopping: asyncio.Event, work: Callable[[asyncio.Event], Awaitable[None]]
) -> None:
    """Be a member, and work whenever this process is the active one, until ``stopping``; ``work`` ends by its event.

    Raises:
        Fenced: a process that is no member of the group has taken over.
    """
    being = asyncio.create_task(member.run(), name="membership")
    try:
        while not stopping.is_set() and await unless_stopped(stopping, member.until_active()):
            ending, began = asyncio.Event(), loop_seconds()
            over = asyncio.create_task(set_when_over(ending, stopping, member), name="assignment")
            try:
                await work(ending)
            except Fenced as error:
                if not await goes_on(member, stopping, error, began):
                    raise
            finally:
                over.cancel()
    finally:
        await member.leave()
        being.cancel()


async def set_when_over(ending: asyncio.Event, stopping: asyncio.Event, member: Membership) -> None:
    """Set ``ending`` at the stop, or once another process is the active one."""
    await unless_stopped(stopping, member.until_passive())
    ending.set()
