"""The worst first: the order of states, a link in a headline, and the time of its state's fact."""

from appliance.console.model.text import count
from appliance.link.model.copy_states import CopyState
from appliance.status.model.messages import cluster_name
from appliance.status.model.snapshot import LinkState, Snapshot
from appliance.status.model.state_words import GONE, HELD

_WORST = (LinkState.STOPPED, LinkState.UNKNOWN, HELD, "behind")
_WELL = (LinkState.COPYING, LinkState.COPIED, GONE)
_BEHIND_SECONDS = 60


def severity(state: str, lag_seconds: float | None) -> tuple[int, int]:
    """Sorts the worst first: stopped, unknown, held, a minute behind and more, paused or promoted, well.

    Of what is behind a doubled lag is worse, so that rows stay where they are.
    """
    seconds = int(lag_seconds or 0)
    if state in _WELL and seconds >= _BEHIND_SECONDS:
        return _WORST.index("behind"), -seconds.bit_length()
    return _WORST.index(state) if state in _WORST else len(_WORST) + (state in _WELL) + (state == GONE), 0


def headline(snapshot: Snapshot) -> str:
    """The troubles of a link in one line: ``2 of 43 partitions stopped``; empty if it is well."""
    growing = [topic for topic in snapshot.topics if topic.state is CopyState.ACTIVE]
    partitions = [partition for topic in growing for partition in topic.partitions]
    counts = (
        (sum(topic.stopped is not None for topic in growing), len(growing), "topics not copied"),
        (sum(each.stopped is not None for each in partitions), len(partitions), "partitions stopped"),
        (len(snapshot.stuck), len(partitions), "partitions failing"),
    )
    said = [f"{cluster_name(each)} does not answer" for each in (snapshot.source, snapshot.destination) if each.unknown]
    said += ["the link is stopped"] if snapshot.stopped else []
    said += [f"{count(some)} of {count(of)} {what}" for some, of, what in counts if some]
    return "; ".join(said) or ("" if snapshot.state.well else snapshot.state)


def fact_since(snapshot: Snapshot) -> int | None:
    """The time since which a link is in its state, by what the clusters and the replicator know; None if they do not.

    It is copied since the newest commit, and inactive since the newest state that an operator has given.
    """
    growing = [topic for topic in snapshot.topics if topic.state is CopyState.ACTIVE]
    partitions = [partition for topic in growing for partition in topic.partitions]
    if snapshot.state is LinkState.INACTIVE:
        return max((record.since for record in snapshot.states), default=None)
    if snapshot.state is LinkState.COPIED:
        return max((each.committed_at for each in partitions if each.committed_at), default=None)
    if snapshot.state is LinkState.FAILING:
        return min((*(fault.since for fault in snapshot.failing.values()), *snapshot.stuck.values()), default=None)
    silent = (snapshot.source.unknown, snapshot.destination.unknown, *(each.unknown for each in snapshot.partitions))
    stopped = (snapshot.stopped, *(each.stopped for each in growing), *(each.stopped for each in partitions))
    faults = {LinkState.UNKNOWN: silent, LinkState.STOPPED: stopped}.get(snapshot.state, ())
    return min((fault.since for fault in faults if fault), default=None)
