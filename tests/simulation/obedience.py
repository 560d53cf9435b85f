"""Invariant M: a state that forbids copying is obeyed by every replicator, from the commit of its record on."""

from collections.abc import Callable, Collection

from appliance.link.model.copy_states import LINK, CopyState, StateRecord, effective


class Obedience:
    """The states that each lane's partition holds; ``violated`` raises what it is told."""

    def __init__(self, violated: Callable[[str], None]) -> None:
        self._lanes: dict[int, dict[str, StateRecord]] = {}
        self._violated = violated
        self.fencings = 0
        """Number of commits by which copies were to be promoted."""

    def took(self, lane: int, records: Collection[StateRecord]) -> None:
        """A transaction commits that writes states into a lane's partition."""
        self.fencings += any(record.state is CopyState.FAILING_OVER for record in records)
        self._lanes.setdefault(lane, {}).update({record.topic: record for record in records})

    def subject(self, topic: str) -> str:
        """The topic, if it has a state of its own in the first lane; else the link."""
        return topic if topic in self._lanes.get(0, {}) else LINK

    def state(self, topic: str) -> CopyState:
        """The state of a topic's copy in the first lane."""
        return effective(self._lanes.get(0, {}), topic)

    def copied(self, lane: int, topic: str, who: str) -> None:
        """A transaction commits that writes to a copy of that lane."""
        state = effective(self._lanes.get(lane, {}), topic)
        if state is not CopyState.ACTIVE:
            self._violated(f"M: {who} writes to the copy of {topic}, which is {state} in lane {lane}")

    def forget(self) -> None:
        """Somebody has deleted the positions topic, and the states with it."""
        self._lanes.clear()

    def is_inactive(self, lane: int, topic: str) -> bool:
        """True when a lane must not copy a topic now."""
        return effective(self._lanes.get(lane, {}), topic) is not CopyState.ACTIVE

    def told(self, lanes: int) -> None:
        """A command has ended well, and no other has run beside it: every lane says the same."""
        first = self._lanes.get(0, {})
        for lane in range(1, lanes):
            if self._lanes.get(lane, {}) != first:
                self._violated(f"M: lane {lane} has not been told what lane 0 has: {first}")
