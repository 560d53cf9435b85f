"""A change of a link's layout as replicators of older releases made it by themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from appliance.commands.layout_change import _Change, _unsettled, find_positions
from appliance.commands.run.operation import Operation
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.checkpoint import LaneCheckpoint, LinkRecord
from appliance.link.model.layout import Layout, LayoutRecord
from appliance.link.model.link_check import layout_fault


class _ByItself(_Change):
    """A change whose record names a run, as long as it is being made."""

    def _record(self, layout: Layout, *, is_changing: bool) -> LayoutRecord:
        return replace(super()._record(layout, is_changing=is_changing), run="older" if is_changing else "")


async def place_as_an_older_release(operation: Operation, lanes: Mapping[Partition, int]) -> bool:
    """Place these partitions in their lanes; False if a command works on the link."""
    topic = await find_positions(operation)
    if layout_fault(topic) or _unsettled(topic.checkpoints[0].states):
        return False

    def wanted(_: Sequence[LaneCheckpoint], link: LinkRecord) -> Layout:
        return replace(link.layout, placed={key: lane for key, lane in lanes.items() if lane < link.lanes})

    await retry_while_busy(_ByItself(operation, wanted).make, lambda error: error.retriable)
    return True
