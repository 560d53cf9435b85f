"""The table of the commands. Each folder declares its command in its own ``command.py``."""

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """A command: its group in the help, a line about it, and where it is."""

    group: str
    summary: str
    where: str


RUN, LOOK, PROVE, ACT = "Run, until stopped", "Look, and change nothing", "Prove", "Act on the link, or on some topics"
PROMOTE, MOVE, SHELL = "Fail over, and back", "Move here from another program", "This program"

COMMANDS: Mapping[str, Entry] = {
    "source": Entry(RUN, "run the tunnel's end beside the source cluster", "appliance.gateway.command:SOURCE"),
    "destination": Entry(
        RUN, "run the tunnel's end beside the destination, with the DNS shim", "appliance.gateway.command:DESTINATION"
    ),
    "replicate": Entry(RUN, "copy the topics", "appliance.replicate:REPLICATE"),
    "console": Entry(RUN, "serve the control center: a page that shows the link", "appliance.console.command:CONSOLE"),
    "spark": Entry(RUN, "run a part of a Spark cluster, to copy on several hosts", "appliance.commands.spark:SPARK"),
    "order": Entry(RUN, "one order of a topic in several clusters, T-global", "appliance.commands.order.command:ORDER"),
    "status": Entry(LOOK, "show progress, lag and stopped partitions", "appliance.status.command:STATUS"),
    "doctor": Entry(LOOK, "test the whole path, and name faults with remedies", "appliance.doctor.command:DOCTOR"),
    "configs": Entry(LOOK, "show the settings that copies would get", "appliance.commands.configs:CONFIGS"),
    "acls": Entry(LOOK, "show the ACLs that copies would get", "appliance.commands.acls:ACLS"),
    "transform": Entry(
        LOOK, "try the SQL in flight on records of the source", "appliance.commands.transform:TRANSFORM"
    ),
    "support-bundle": Entry(
        LOOK, "write what support needs into one file without secrets", "deploy.support.command:SUPPORT_BUNDLE"
    ),
    "verify": Entry(PROVE, "read both sides and compare them", "appliance.verify.command:VERIFY"),
    "audit": Entry(PROVE, "query what was copied when", "appliance.audit.command:AUDIT"),
    "offsets": Entry(PROVE, "translate offsets between a source and its copy", "appliance.commands.offsets:OFFSETS"),
    "pause": Entry(ACT, "pause copying", "appliance.commands.pause:PAUSE"),
    "resume": Entry(ACT, "resume what is paused, and stopped partitions", "appliance.commands.resume:RESUME"),
    "reset": Entry(ACT, "set where in the source copying goes on", "appliance.commands.reset:RESET"),
    "lanes": Entry(ACT, "show the lanes and their load, and change their number", "appliance.commands.lanes:LANES"),
    "rm-topic": Entry(ACT, "stop copying topics for good", "appliance.commands.removal:RM_TOPIC"),
    "link": Entry(ACT, "delete the link", "appliance.commands.deletion:LINK_COMMAND"),
    "promote": Entry(
        PROMOTE, "promote the copies as planned, with nothing lost", "appliance.commands.promotion:PROMOTE"
    ),
    "failover": Entry(PROMOTE, "promote the copies when the source is lost", "appliance.commands.promotion:FAILOVER"),
    "failback": Entry(
        PROMOTE, "bring back what promoted copies took, and copy again", "appliance.commands.failback.command:FAILBACK"
    ),
    "import": Entry(MOVE, "make links of another program's settings", "appliance.migrate.command:IMPORT"),
    "adopt": Entry(MOVE, "go on in place where MirrorMaker 2 has stopped", "appliance.commands.adoption.adopt:ADOPT"),
    "completion": Entry(SHELL, "print the completion of a shell", "appliance.commands.completion:COMPLETION"),
}
"""The commands by name, in the order of their groups."""
