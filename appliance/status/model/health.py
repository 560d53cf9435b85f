"""Whether somebody has to come: the answer of the health endpoint."""

from appliance.status.model.messages import troubles
from appliance.status.model.snapshot import Snapshot, State
from appliance.status.model.timestamps import utc

STALE_SECONDS = 30.0
"""A snapshot that is older says nothing about now."""


def is_fresh(snapshot: Snapshot, now: int) -> bool:
    """Whether a snapshot still counts at ``now``, in milliseconds."""
    return now - snapshot.at <= STALE_SECONDS * 1000


def health(snapshot: Snapshot | None, now: int) -> tuple[bool, dict[str, object]]:
    """Whether all is well at ``now``, and a JSON object that says what is not."""
    if snapshot is None:
        return False, {"state": State.UNKNOWN, "at": None, "troubles": ["nobody has looked yet"]}
    if not is_fresh(snapshot, now):
        stale = f"nobody has looked since {utc(snapshot.at)}"
        return False, {"state": State.UNKNOWN, "at": utc(snapshot.at), "troubles": [stale]}
    answer: dict[str, object] = {"state": snapshot.state, "at": utc(snapshot.at), "troubles": troubles(snapshot)}
    return snapshot.state.well, answer
