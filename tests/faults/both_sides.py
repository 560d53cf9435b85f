"""Some source partitions and their copies, read anew and held against each other by the checker."""

from collections.abc import Mapping

from testbed.cluster import Cluster
from tests.faults.checker import Violation, violations_of_records
from tests.faults.history import History, Place
from tests.faults.observer import Observer


async def compared(source: Cluster, destination: Cluster, copies: Mapping[Place, Place]) -> list[Violation]:
    """What is wrong with the records of these copies, as an independent consumer sees both sides up to their ends.

    Raises:
        AssertionError: a log cannot be read as a log should be.
    """
    written = Observer(source.client_configuration(), {place: place for place in copies})
    copied = Observer(destination.client_configuration(), {copy: place for place, copy in copies.items()})
    for side in (written, copied):
        await side.read_to_ends()
    none: dict[Place, list[int]] = {place: [] for place in copies}
    acknowledged = {place: track.fingerprints for place, track in written.tracks.items()}
    return violations_of_records(
        History(acknowledged, none, written.tracks, copied.tracks, copied.tracks, {place: [] for place in copies})
    )
