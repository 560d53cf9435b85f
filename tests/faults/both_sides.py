"""Some source partitions and their copies, read anew and held against each other by the checker."""

from collections.abc import Mapping

from testbed.cluster import Cluster
from tests.faults.checker import Violation, violations_of_records
from tests.faults.history import History, Partition
from tests.faults.observer import Observer


async def compared(source: Cluster, destination: Cluster, copies: Mapping[Partition, Partition]) -> list[Violation]:
    """The violations in these copies, as an independent consumer sees both sides up to their ends.

    Raises:
        AssertionError: a log cannot be read as a log should be.
    """
    written = Observer(source.client_configuration(), {partition: partition for partition in copies})
    copied = Observer(destination.client_configuration(), {copy: partition for partition, copy in copies.items()})
    for side in (written, copied):
        await side.read_to_ends()
    none: dict[Partition, list[int]] = {partition: [] for partition in copies}
    acknowledged = {partition: track.fingerprints for partition, track in written.tracks.items()}
    return violations_of_records(
        History(
            acknowledged, none, written.tracks, copied.tracks, copied.tracks, {partition: [] for partition in copies}
        )
    )
