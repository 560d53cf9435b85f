"""Which part of the appliance reads the settings: it decides which variables must be there."""

import enum


class Role(enum.Flag):
    """A part of the appliance; parts that share a machine are joined by ``|``.

    ``SOURCE`` is the tunnel's server on the source VM, which needs no Kafka API key. ``DESTINATION`` is the tunnel's
    client and the DNS shim on the destination VM, which asks the source cluster for its brokers. ``REPLICATOR`` copies,
    and logs in to both clusters.
    """

    SOURCE = enum.auto()
    DESTINATION = enum.auto()
    REPLICATOR = enum.auto()


TUNNEL_ENDS = Role.SOURCE | Role.DESTINATION
EVERY_ROLE = TUNNEL_ENDS | Role.REPLICATOR
