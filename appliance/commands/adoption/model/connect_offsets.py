"""The offsets that Kafka Connect stores for MirrorMaker 2's source connector, as records of its offsets topic.

The key is JSON, ``["MirrorSourceConnector", {"cluster": "orange", "partition": 0, "topic": "orders"}]``: the name of
the connector, and the source partition with the source cluster's alias. The value is ``{"offset": 41}``, the last
copied offset; without a value the offset was reset. All records up to there had been acknowledged when it was written.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from appliance.errors import PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, key_and_value
from appliance.link.model.json_records import fields, partition_of, reading, text, whole


@dataclass(slots=True)
class ConnectOffsets:
    """The offsets of one source cluster, by its alias; those of each connector that has copied from it."""

    alias: str
    connector: str = ""
    _last: dict[tuple[str, Partition], int] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Add a record; those of other connectors and clusters are ignored. The newest of a key holds."""
        try:
            with reading("the offsets of Kafka Connect", record):
                decoded = _decode(record, self.alias)
        except PeerError:
            return  # another connector's: each has a format of its own
        if decoded is None or self.connector not in ("", decoded[0]):
            return
        connector, partition, offset = decoded
        if offset is None:
            self._last.pop((connector, partition), None)
        else:
            self._last[connector, partition] = offset

    @property
    def following(self) -> Mapping[Partition, int]:
        """The source offset after the last committed one; the lowest, where several connectors have copied."""
        lowest: dict[Partition, int] = {}
        for (_, partition), offset in self._last.items():
            lowest[partition] = min(lowest.get(partition, offset + 1), offset + 1)
        return lowest


def _decode(record: Record, alias: str) -> tuple[str, Partition, int | None] | None:
    """The connector, the source partition, and its offset; None for a record that is no source connector's."""
    key, value = key_and_value(record.body)
    connector, place = json.loads(key or b"")
    if place.keys() != {"cluster", "partition", "topic"} or place["cluster"] != alias:
        return None
    return text(connector), partition_of(place), None if value is None else whole(fields(value)["offset"], 0, 2**63 - 2)
