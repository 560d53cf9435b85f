"""The parts of the appliance that read the settings, and the two clusters that the settings name."""

import enum


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
LOGIN = Role.DESTINATION | Role.REPLICATOR
"""The roles that log in to the source."""


class Side(enum.StrEnum):
    """One of the two clusters; the value is the prefix of its variables, in lower case."""

    SOURCE = "source"
    DESTINATION = "destination"
