"""The parts of the appliance that read the settings, and the clusters that the settings name."""

import enum
from dataclasses import dataclass


class Role(enum.Flag):
    """A part of the appliance; parts that share a machine are joined by ``|``.

    ``SOURCE`` is the tunnel's server on the source VM, which needs no Kafka API key. ``DESTINATION`` is the tunnel's
    client and the DNS shim on the destination VM, which asks the source cluster for its brokers. ``REPLICATOR`` copies,
    and logs in to both clusters. ``CONSOLE`` is the control center beside it, which needs what the replicator needs.
    """

    SOURCE = enum.auto()
    DESTINATION = enum.auto()
    REPLICATOR = enum.auto()
    CONSOLE = enum.auto()


TUNNEL_ENDS = Role.SOURCE | Role.DESTINATION
EVERY_ROLE = TUNNEL_ENDS | Role.REPLICATOR | Role.CONSOLE
PREPARE_ALONE = Role(0)
"""Of a variable that the prepare scripts read, and no part of the appliance."""
LOGIN = Role.DESTINATION | Role.REPLICATOR
"""The roles that log in to the source."""


def prefix_of(cluster: str) -> str:
    """The beginning of the names of a cluster's variables: SOURCE for the source, US_EAST for us-east in an order."""
    return cluster.upper().replace("-", "_").replace(".", "_")


class Side(enum.StrEnum):
    """One of the two clusters of a link."""

    SOURCE = "source"
    DESTINATION = "destination"


@dataclass(frozen=True, slots=True)
class Member:
    """One of the clusters of an order; ``own`` is true of the one beside this VM, which is written."""

    id: str
    own: bool

    @property
    def side(self) -> Side:
        """Its side of the links into this VM's cluster."""
        return Side.DESTINATION if self.own else Side.SOURCE

    def __str__(self) -> str:
        return self.id


Place = Side | Member
"""The cluster that variables are about."""
