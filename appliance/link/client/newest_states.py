"""The states of a link's copies, as they are committed in its first lane: there each change begins."""

from uuid import UUID

from appliance.kafka.client.interface import Cluster
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.copy_states import States
from appliance.link.model.naming import Naming


class NewestStates:
    """Reads the states again and again, each time only what has been committed since."""

    def __init__(self, destination: Cluster, naming: Naming) -> None:
        self._cluster = destination
        self._name = naming.positions_topic
        self._checkpoint = LaneCheckpoint()
        self._id: UUID | None = None

    async def read(self) -> States:
        """The states now; none of a link that has not been made yet.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused, PeerError: as everywhere.
        """
        topic = (await self._cluster.metadata([self._name])).topics.get(self._name)
        if topic is None or not topic.leaders:
            return {}
        if topic.id != self._id:
            self._id, self._checkpoint = topic.id, LaneCheckpoint()
        await peek_checkpoint(self._cluster, self._name, 0, self._checkpoint)
        return dict(self._checkpoint.states)
