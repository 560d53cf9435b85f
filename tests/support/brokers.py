"""Lists of a source cluster's brokers, and a carrier that takes them."""

from collections.abc import Mapping, Sequence

from appliance.errors import ApplianceError
from appliance.gateway.model.brokers import BrokerState, BrokerView, Fault
from appliance.kafka.protocol.metadata import Metadata
from appliance.settings.target import AllowedTargets, Target, TargetPattern

B0, B1, B2 = (Target(f"b{node}.orange.example", 9092 + node) for node in range(3))
OTHER_PORT, OTHER_NAME = Target("b3.orange.example", 9999), Target("b3.grape.example", 9092)
BY_ADDRESS = Target("10.0.0.7", 9092)
ALLOWED = AllowedTargets((Target("seed.orange.example", 9092),), (TargetPattern("orange.example", 9092, 7),))

NOW = 1_800_000_000.0
SEEN = BrokerView(
    NOW - 2,
    {0: B0, 1: B1, 3: OTHER_PORT},
    {B0: BrokerState.OPEN, B1: BrokerState.OPEN, OTHER_PORT: BrokerState.REFUSED},
)
WELL = BrokerView(NOW - 2, {0: B0}, {B0: BrokerState.OPEN})
REFUSED_KEY = BrokerView(NOW - 60, {0: B0}, {B0: BrokerState.OPEN}, Fault.CREDENTIALS, "check SOURCE_API_KEY")


class ScriptedCluster:
    """Metadata that returns brokers, or raises errors, one after the other; the last repeats."""

    def __init__(self, *answers: Mapping[int, Target] | ApplianceError) -> None:
        self._answers = list(answers)

    async def metadata(self, topics: Sequence[str] | None) -> Metadata:
        assert topics == []
        now = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(now, ApplianceError):
            raise now
        return Metadata("orange", 0, now, {})
