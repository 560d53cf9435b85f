"""Faults of single logs: leaders, lost records, retention, compaction."""

import functools

from tests.simulation.brokers import NODES
from tests.simulation.cleaner import compact
from tests.simulation.link import Link
from tests.simulation.log import Log

_RENEWED_AFTER = 0.1


class LogMisfortunes:
    """Injects them into the logs of a link's two clusters."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def move_leader(self) -> None:
        """Another broker leads; the former one may not notice for a while, and serves readers."""
        link = self._link
        cluster = link.chance.choice((link.source, link.destination))
        logs = list(cluster.logs())
        if not logs:
            return
        log = link.chance.choice(logs)
        link.fates.note("another leader of", cluster.name, log)
        unnoticed = link.chance.random() < 0.5
        cluster.lead(log, _other(log), unnoticed)
        if unnoticed:
            link.at(link.loop.time() + link.chance.random(), functools.partial(setattr, log, "former", None))

    def lose(self) -> None:
        """An unclean election of a copy, or a lost disk (invariant J).

        A transaction that loses its records while it is open commits nevertheless, and only a later start finds out:
        the checker, which looks at each commit, could not tell it from a defect.
        """
        link = self._link
        suffix = link.naming.destination("")
        copies = [log for log in link.destination.logs() if log.topic.endswith(suffix) and log.entries and not log.open]
        if copies:
            log = link.chance.choice(copies)
            entry = link.chance.choice(log.entries[-6:])
            link.fates.note("loss of", log, "from", entry.base, "to", log.end)
            link.invariants.lost.add(log)
            link.invariants.losing(log, entry.base)
            link.befell(log.topic.removesuffix(suffix), log.number)
            log.truncate(entry.base)
            link.destination.lead(log, link.chance.choice(NODES))

    def truncate(self) -> None:
        """An unclean election at the source: its log ends where another replica's does, and is written on there."""
        link = self._link
        logs = [log for log in link.source.logs() if log.entries and not link.source.is_compacted(log)]
        if not logs:
            return
        log = link.chance.choice(logs)
        truth, entry, end = (
            link.invariants.current[log.topic, log.number],
            link.chance.choice(log.entries[-6:]),
            log.end,
        )
        truth.learn()
        log.truncate(entry.base)
        truth.truncated(end)
        link.workload.truncated(log)
        link.befell(log.topic, log.number)
        link.source.lead(log, link.chance.choice(NODES))
        link.fates.note("truncated:", log, "from", end, "to", log.end)
        for _ in range(link.chance.choice((0, 1, 1, 4))):
            link.workload.write(log)

    def delete_old(self) -> None:
        """Retention at the source."""
        link = self._link
        log = link.chance.choice(list(link.source.logs()))
        if log.entries:
            link.invariants.current[log.topic, log.number].learn()
            log.delete_before(link.chance.choice(log.entries).base)
            link.fates.note("retention:", log, "starts at", log.start)

    def delete_old_copies(self) -> None:
        """Retention at the destination.

        Not of an aborted batch past the remembered end: nobody could say who had written it, and the copy would stop.
        """
        link = self._link
        suffix, positions = link.naming.destination(""), link.invariants.positions
        copies = [log for log in link.destination.logs() if log.topic.endswith(suffix) and log.entries]
        if copies:
            log = link.chance.choice(copies)
            held = positions.get((log.topic.removesuffix(suffix), log.number))
            end = held.copy_end.offset if held and held.copy_end else 0
            log.delete_before(min(end, link.chance.choice(log.entries).base))
            link.invariants.deleted(log)
            link.befell(log.topic.removesuffix(suffix), log.number)
            link.fates.note("retention:", log, "starts at", log.start)

    def compact(self) -> None:
        """The brokers of either side clean a log, up to anywhere.

        A copy that has lost something is left alone: what filled the hole, and shows that there was one, could go.
        """
        link = self._link
        logs = [
            log for cluster in (link.source, link.destination) for log in cluster.logs() if cluster.is_compacted(log)
        ]
        ends = [(log, end) for log in logs if log not in link.invariants.lost for end in _cleanable(log)]
        if ends:
            self._clean(*link.chance.choice(ends))

    def renew(self) -> None:
        """A record comes in another epoch, and another one in the next replaces it.

        Then a replica leads that was made from what compaction has left, and knows nothing of the epoch between.
        """
        link = self._link
        logs = [log for log in link.source.logs() if link.source.is_compacted(log)]
        if logs:
            log = link.chance.choice(logs)
            link.source.lead(log, _other(log))
            link.workload.overwrite(log)
            link.at(link.loop.time() + _RENEWED_AFTER * link.chance.random(), lambda: self._rebuild(log))

    def _rebuild(self, log: Log) -> None:
        link = self._link
        link.source.lead(log, _other(log))
        link.workload.overwrite(log)
        if ends := _cleanable(log):
            self._clean(log, ends[-1])
        log.rebuild_epochs()
        link.source.lead(log, _other(log))
        link.fates.note("rebuilt:", log, log.epochs)

    def _clean(self, log: Log, end: int) -> None:
        link, before = self._link, len(log.entries)
        if (log.topic, log.number) in link.invariants.current:
            link.invariants.current[log.topic, log.number].learn()
        compact(log, end)
        link.fates.note("compacted:", log, "up to", end, "from", before, "batches to", len(log.entries))


def _other(log: Log) -> int:
    return sum(NODES) - log.leader


def _cleanable(log: Log) -> list[int]:
    """The offsets up to which a log may be cleaned: neither what is undecided, nor its last batch."""
    return [entry.base for entry in log.entries[1:] if entry.base <= log.stable_end]
