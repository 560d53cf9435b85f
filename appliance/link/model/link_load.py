"""The load of a link's partitions at one moment, as the status sees it for whoever places partitions by load. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from appliance.kafka.protocol.metadata import Partition


@dataclass(frozen=True, slots=True)
class LoadSample:
    """The bytes ever ``copied`` of each source partition with a position, and the bytes ``due`` of those with a lag.

    ``at`` is in seconds.
    """

    at: float
    copied: Mapping[Partition, int]
    due: Mapping[Partition, float]


@dataclass(slots=True)
class NewestLoad:
    """The newest sample; None as long as the link does not plainly copy, so that its lanes are better left alone."""

    sample: LoadSample | None = None
