"""A fetch session (KIP-227): the broker remembers the wanted partitions, and gets only the changes.

The first request of a session, of epoch 0, names everything; each later one increments the epoch and names the changes,
and the answers name only partitions with news. A broker keeps sessions for a limited time and in a limited number, and
counts the epochs: whenever its state may differ from ours, a request that names everything replaces the old session
with a new one, and nothing is lost.
"""

from appliance.kafka.client.fetch import FetchExchange, FetchLimits, Session, WantedPartition, topic_names
from appliance.kafka.protocol.metadata import NOWHERE, Partition

LOST = frozenset({"FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH", "FETCH_SESSION_TOPIC_ID_ERROR"})
"""The codes of a broker that does not have the session."""

_NONE = 0
_FULL = 0
_EPOCH_MAX = 2**31 - 1


class FetchSession:
    """The partitions wanted of one broker, and those that it knows; one Fetch at a time."""

    def __init__(self) -> None:
        self._wanted: dict[Partition, WantedPartition] = {}
        self._at_broker: dict[Partition, WantedPartition] = {}
        self._changed: dict[Partition, None] = {}
        self._names: dict[bytes, str] = {}
        self._without_id: set[Partition] = set()
        self._id = _NONE
        self._epoch = _FULL
        self._by_id = False
        self._heard = True

    def __len__(self) -> int:
        """Number of partitions wanted."""
        return len(self._wanted)

    def want(self, wanted: WantedPartition) -> None:
        """Read a partition from there on; it goes to the back of the wanted ones."""
        self.drop(wanted.partition)
        self._wanted[wanted.partition] = wanted
        self._changed[wanted.partition] = None
        if wanted.topic_id == NOWHERE:
            self._without_id.add(wanted.partition)

    def drop(self, partition: Partition) -> None:
        """Stop reading it; no effect if it is not wanted."""
        if self._wanted.pop(partition, None) is not None:
            self._changed[partition] = None
            self._without_id.discard(partition)

    def restart(self) -> None:
        """Make the next Fetch name everything: the connection is new, or the broker requires it."""
        self._epoch = _FULL

    @property
    def full(self) -> bool:
        """True when the Fetch in flight names everything."""
        return self._epoch == _FULL

    def ask(self, limits: FetchLimits, offers_ids: bool) -> FetchExchange:
        """The next Fetch; it names everything if the one before was not answered.

        ``offers_ids``: the broker accepts topic ids.
        """
        by_id = offers_ids and not self._without_id
        if not self._heard or by_id != self._by_id or any(map(self._is_of_another_topic, self._changed)):
            self._epoch = _FULL
        self._heard, self._by_id = False, by_id
        named, forgotten = self._everything() if self._epoch == _FULL else self._difference()
        self._changed.clear()
        return FetchExchange(named, limits, by_id, self._names, Session(self._id, self._epoch), forgotten)

    def note_answer(self, session_id: int) -> None:
        """Take in an answer, which names the session; 0: the broker has none, or no room for one."""
        self._heard = True
        if session_id == _NONE or (self._epoch != _FULL and session_id != self._id):
            self._epoch = _FULL
        else:
            self._epoch = self._epoch % _EPOCH_MAX + 1
        self._id = session_id

    def _is_of_another_topic(self, partition: Partition) -> bool:
        wanted, at_broker = self._wanted.get(partition), self._at_broker.get(partition)
        return wanted is not None and at_broker is not None and wanted.topic_id != at_broker.topic_id

    def _everything(self) -> tuple[list[WantedPartition], list[WantedPartition]]:
        named = list(self._wanted.values())
        self._at_broker = dict(self._wanted)
        self._names = topic_names(named)
        return named, []

    def _difference(self) -> tuple[list[WantedPartition], list[WantedPartition]]:
        named, forgotten = [], []
        for partition in self._changed:
            wanted, at_broker = self._wanted.get(partition), self._at_broker.get(partition)
            if wanted is not None and wanted != at_broker:
                named.append(wanted)
                self._at_broker[partition] = wanted
            elif wanted is None and at_broker is not None:
                forgotten.append(at_broker)
                del self._at_broker[partition]
        self._names.update(topic_names(named))
        return named, forgotten
