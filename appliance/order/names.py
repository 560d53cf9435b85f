"""The names of an order: the same in every cluster."""

import re

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.naming import BEATS, HIDDEN, ORDER, Naming
from appliance.link.model.naming_policies import NamingPolicy

_NOTHING = re.compile("(?!)")

BEATS_LOG = Partition(ORDER + BEATS, 0)
"""The partition of a cluster with the beats of its process, and with wishes."""

_ASIDE = ".aside-"


class GlobalNaming(NamingPolicy):
    """``orders-global`` for ``orders``, of whatever cluster: an origin's name may begin with it and a colon."""

    variable = chosen_by = "GLOBAL_TOPICS_REGEX"

    def copy_of(self, topic: str) -> str:
        """The name of T-global."""
        return topic.rpartition(":")[2] + self.after

    def travels_back(self, topic: str) -> bool:
        """True for T-globals, and for what was set aside of one."""
        return f"{self.after}{_ASIDE}" in topic or NamingPolicy.travels_back(self, topic)


def order_naming(topics_regex: str) -> Naming:
    """The names of an order of the topics that match."""
    policy = GlobalNaming(after="-global")
    return Naming(ORDER, policy, re.compile(topics_regex), _NOTHING, keeps_times=True)


def hidden_topic(topic: str) -> str:
    """The name of the hidden log of a topic."""
    return f"{ORDER}.{topic}{HIDDEN}"


def topic_of(hidden: str) -> str:
    """The topic that a hidden log belongs to; empty if the name is no hidden log's."""
    topic = hidden.removeprefix(f"{ORDER}.").removesuffix(HIDDEN)
    return topic if hidden == hidden_topic(topic) else ""


def aside_topic(shown: str, epoch: int) -> str:
    """The name of the topic of what a T-global alone had shown, when it was rebuilt in an epoch of that number."""
    return f"{shown}{_ASIDE}{epoch}"
