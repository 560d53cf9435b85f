"""The operator's acceptance of a positions topic as it is now: ``appliance resume --adopt-positions``."""

from collections.abc import Callable, Sequence

from appliance.clock import now_ms
from appliance.driver.establish import Establishing
from appliance.errors import LinkRefused
from appliance.grouping import grouped
from appliance.kafka.records.records import Record
from appliance.link.handle import Link
from appliance.link.model.checkpoint import OPERATOR
from appliance.link.model.checkpoint_records import encode_link, encode_tombstone
from appliance.link.model.copy_states import LINK, CopyState, effective
from appliance.link.model.link_check import ADOPT, PositionsTopic
from appliance.settings.values import Settings


async def adopt_positions(settings: Settings, tell: Callable[[str], None], *, only_plan: bool = False) -> int:
    """Let the link continue with its positions topic as it is now; the number of changes. A repeated call continues."""
    async with Link.open(settings) as link:
        establishing = Establishing(settings, link, OPERATOR)
        topic = await establishing.check.positions()
        fault = await establishing.check.fault(topic)
        if not fault:
            return 0
        tell(fault)
        _require_adoptable(establishing, topic, fault)
        lines = [] if only_plan else await _adopt(establishing, topic)
        for line in lines:
            tell(line)
        return max(len(lines), 1)


def _require_adoptable(establishing: Establishing, topic: PositionsTopic, fault: str) -> None:
    """Refuse to adopt a topic whose fault wants something else first, and one of a link that is being deleted."""
    if ADOPT not in fault:
        raise LinkRefused(fault)
    if any(effective(each.states, LINK) is CopyState.DELETED for each in topic.checkpoints):
        raise LinkRefused(
            f"{establishing.link.naming.replicator} is being deleted: `appliance link delete` again ends that"
        )


async def _adopt(establishing: Establishing, topic: PositionsTopic) -> list[str]:
    """Adopt the topic, and forget the positions in the wrong lanes' partitions; a line for each."""
    await establishing.topics.make_positions()
    await establishing.topics.make_producers(recreate=True)
    topic = await establishing.check.existing_positions()
    forgotten = await _forget_misplaced(establishing, topic)
    registry = establishing.link.registry
    if establishing.link.naming.sharing.others_write:
        await registry.note_begun()
        # No lane may take itself for one that has never written: a position may be lost of what another has copied.
        for index in range(topic.lanes):
            await establishing.lane(topic, index).start()
    record, starts = await establishing.link_record(topic), await establishing.starts(topic)
    await _remember(establishing, topic, 0, [*starts, encode_link(record, record.made)])
    await registry.refresh()
    await registry.withdraw_deletion()
    if fault := await establishing.check.fault(await establishing.check.existing_positions()):
        raise LinkRefused(fault)
    summary = f"{record.partitions} partitions, {record.lanes} lanes, source {record.source_cluster}"
    return [*forgotten, f"{topic.name}: {summary}"]


async def _forget_misplaced(establishing: Establishing, topic: PositionsTopic) -> list[str]:
    misplaced = grouped(topic.misplaced_positions(topic.layout))
    for index, keys in misplaced.items():
        await _remember(establishing, topic, index, [encode_tombstone(key, now_ms()) for key in keys])
    return [
        f"{topic.name}-{index}: forgot the position of {partition}"
        for index, keys in misplaced.items()
        for partition in keys
    ]


async def _remember(establishing: Establishing, topic: PositionsTopic, index: int, records: Sequence[Record]) -> None:
    """Write them into a lane's partition; returns when they are visible there."""
    lane = establishing.lane(topic, index)
    await lane.start()
    await lane.remember(records)
    # The broker answers a commit before it writes the markers; a lane that starts reads until it sees its own.
    await establishing.lane(topic, index).start()
