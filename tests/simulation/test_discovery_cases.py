"""Bugs of the look at the topics of both clusters, each by itself."""

from collections.abc import Awaitable, Callable, Mapping, Sized

import pytest
from kio.schema.errors import ErrorCode

from appliance.driver import config_follower
from appliance.driver.copy_topics import CopyTopics
from appliance.driver.discovery import TopicDiscovery
from appliance.engine.write.lane import Lane
from appliance.errors import BrokerBusy
from appliance.kafka.client.config_filter import Change, ConfigFilter, FittedChanges
from appliance.link.handle import Link
from appliance.link.model.checkpoint import OPERATOR, Owner
from appliance.link.model.checkpoint_records import encode_state
from appliance.link.model.copy_states import CopyState, StateRecord
from appliance.link.model.naming import Naming
from appliance.settings.values import OnGap, Start
from tests.simulation.log import Log
from tests.simulation.process import TRANSACTION_TIMEOUT, settings
from tests.simulation.scenario import Clusters

SETTING = "max.message.bytes"


class Looking(Clusters):
    """A look at two clusters, with topics ``grows`` and ``stays`` that are copied already."""

    def __init__(self) -> None:
        super().__init__()
        self.slept = False
        known = settings("orange", OnGap.STOP, Start.EARLIEST, 2)
        self.naming = Naming.of(known)
        self.positions = self.destination.make(self.naming.positions_topic, 2, {"cleanup.policy": "compact"})
        self.topics = known.topics
        self.restart()
        for name in ("grows", "stays"):
            self.source.make(name, 1)
        self.look()

    def restart(self) -> None:
        """Begin as a new process, which knows only what the clusters hold."""
        self.discovery = TopicDiscovery(Link(self.at_source, self.at_destination, self.naming), self.topics)

    def look(self) -> dict[str, str]:
        """Look once; what is copied with which of its partitions, or why not."""
        found = self.run(self.discovery.search())
        copied = dict.fromkeys(found.unfit, "")
        for replica in found.replicas:
            copied[replica.source_topic] = f"{copied.get(replica.source_topic, '')}{replica.partition}"
        return copied

    def look_often(self) -> None:
        """Look until every topic was looked at."""
        for _ in range(6):
            self.look()

    def copies(self) -> dict[str, int]:
        """The number of partitions of each copy."""
        topics = self.destination.topics.values()
        return {topic.name: len(topic.logs) for topic in topics if topic.name.endswith(".copy")}

    def asleep(self, work: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        """The same work, which a promotion comes before."""

        async def late(*arguments: object) -> object:
            if not self.slept:
                self.slept = True
                await self._promote()
            return await work(*arguments)

        return late

    async def _promote(self) -> None:
        """Say of the whole link that it is promoted."""
        owner = Owner(OPERATOR, "", "host", 0)
        lane = Lane(0, self.at_destination, self.naming, owner, TRANSACTION_TIMEOUT)
        await lane.start()
        await lane.remember([encode_state(StateRecord("", CopyState.PROMOTED, 1, "op@host"), 1)])


def test_case_200_a_first_lane_without_a_leader_keeps_nothing_from_being_copied_that_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Its partition holds the states: a look waited for it half a minute, and then failed.
    looking = Looking()
    leads, first = looking.destination.leads, looking.positions.logs[0]

    def none_leads(log: Log | None, node: int, epoch: int = -1) -> ErrorCode:
        return ErrorCode.not_leader_or_follower if log is first else leads(log, node, epoch)

    monkeypatch.setattr(looking.destination, "leads", none_leads)
    looking.source.grow("grows", 2)
    looking.source.make("new", 1)
    looking.source.make("has-a-copy", 1)
    looking.destination.make("has-a-copy.copy", 1)
    began = looking.loop.time()
    assert looking.look() == {"grows": "0", "has-a-copy": "", "new": "", "stays": "0"}
    assert looking.loop.time() - began < 5
    assert looking.copies() == {"grows.copy": 1, "has-a-copy.copy": 1, "stays.copy": 1}
    monkeypatch.undo()
    assert looking.look() == {"grows": "01", "has-a-copy": "0", "new": "0", "stays": "0"}


BEFORE_REQUESTS = {
    "makes": (ConfigFilter, "known_settings"),
    "grows": (CopyTopics, "claimed"),
    "configures": (config_follower, "try_describe"),
}
"""What a look does last before it changes copies in one of three ways."""


@pytest.mark.parametrize("way", BEFORE_REQUESTS)
def test_case_201_a_driver_that_slept_through_a_promotion_makes_grows_and_configures_no_copy(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No epoch fences such a request: a promoted copy got partitions and settings of its old source once more.
    looking = Looking()
    owner, name = BEFORE_REQUESTS[way]
    asleep = looking.asleep(getattr(owner, name))
    monkeypatch.setattr(owner, name, asleep)
    if way == "makes":
        looking.source.make("new", 1)
    elif way == "grows":
        looking.source.grow("grows", 2)
    else:
        looking.source.topics["stays"].configs[SETTING] = "2097152"
    before = looking.copies()
    looking.look()
    assert looking.slept
    assert looking.copies() == before
    assert SETTING not in looking.destination.topics["stays.copy"].configs


class Killed(Exception):
    """The replicator's process has ended here."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("work", ["make", "change"])
def test_case_664_killed_before_or_after_a_setting_is_set_the_next_replicator_unsets_it_with_the_source(
    work: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It took the setting for the operator's own.
    looking, name = Looking(), {"make": "new", "change": "stays"}[work]
    if work == "make":
        looking.source.make("new", 1, {SETTING: "2097152"})
    looking.source.topics[name].configs[SETTING] = "2097152"
    real = getattr(ConfigFilter, work)

    async def killed(configs: ConfigFilter, changes: Sized) -> object:
        done = await real(configs, changes) if when == "after" or not changes else None
        if changes:
            raise Killed
        return done

    with monkeypatch.context() as patch:
        patch.setattr(ConfigFilter, work, killed)
        with pytest.raises(Killed):
            looking.look_often()
    copy = looking.destination.topics.get(f"{name}.copy")
    assert (copy is not None and SETTING in copy.configs) is (when == "after")
    del looking.source.topics[name].configs[SETTING]
    looking.restart()
    looking.look_often()
    assert SETTING not in looking.destination.topics[f"{name}.copy"].configs


def test_case_665_a_setting_whose_unsetting_has_failed_is_unset_by_a_later_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The look had taken it for done already: the copy kept the setting for ever.
    looking = Looking()
    stays = looking.source.topics["stays"]
    stays.configs[SETTING] = "2097152"
    looking.look_often()
    del stays.configs[SETTING]
    real, failures = ConfigFilter.change, 2

    async def failing(configs: ConfigFilter, changes: Mapping[str, Change]) -> FittedChanges:
        nonlocal failures
        failures -= bool(changes)
        if changes and failures >= 0:
            return FittedChanges(failures=dict.fromkeys(changes, BrokerBusy("is busy", "REQUEST_TIMED_OUT")))
        return await real(configs, changes)

    monkeypatch.setattr(ConfigFilter, "change", failing)
    for _ in range(4):
        looking.look_often()
    assert failures < 0
    assert SETTING not in looking.destination.topics["stays.copy"].configs
