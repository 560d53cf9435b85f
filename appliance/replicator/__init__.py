"""The replicator: which topics, by which lane, in which transaction; scheduled by Spark, remembered by the destination.

Comes in: settings, metadata, the positions topic. Goes out: copies and positions, in transactions.

- ``driver``, ``discovery``: the search for topics and partitions every few seconds, and the plan of lanes and tasks.
- ``jobs``: the Spark jobs that copy, one after the other.
- ``establish``, ``resume``: making a link, checking it at every start, and resuming stopped partitions.
- ``config_follower``, ``backlog``, ``configs_command``: the topic settings of copies, and ``appliance configs``.
- ``acl_follower``, ``acls_command``: the ACLs of copies for the readers of their sources, and ``appliance acls``.
- ``offsets_build``: maps of offsets for records that were copied without one.
- ``failback``: ``appliance failback``.
- ``failback_link``, ``failback_beginning``: the link in reverse, and where it begins.
- ``failback_diverged``, ``failback_positions``: uncopied records, kept elsewhere; the positions of the link afterwards.
- ``reset``: ``appliance reset``.
- ``lanes``, ``lanes_writer``, ``lanes_command``: another layout of an existing link, and ``appliance lanes``.
- ``unfinished_layout``: the end of a change of lanes that a replicator of an older release has left.
- ``transform_command``: ``appliance transform``.
- ``command``: ``appliance spark``, ``resume``, ``reset``, ``failback`` and ``offsets``.
- ``spark``: the tasks and their processes.
- ``transform``: the records' way through SQL, between ``read`` and ``write``.
- ``read``: from Fetch to buffered batches.
- ``write``: from batches to committed transactions.
- ``model``: decisions without IO.

Invariants, as the tests cite them:

- **A** A copy and the position past it commit in one transaction, or neither does.
- **B** Only the newest epoch of lane i writes what lane i owns.
- **C** A lane reads its positions only after it has fenced its predecessor.
- **D** A position never moves back, except by the operator's command.
- **E** Records of one source partition keep their order, partition, key, value, headers and timestamp.
- **F** Nothing is skipped in silence.
- **G** A topic is its id, not its name.
- **H** Remembered state is complete or refused.
- **I** A copy belongs to one link.
- **J** A copy that lost acknowledged records is noticed, and stops.
- **K** New topics and partitions are copied from their beginning.
- **L** Every source offset whose record the copy holds translates exactly, both ways.
- **M** A state that forbids copying is obeyed by every replicator.
- **N** Nothing is said that was not looked at: both logs are judged now, by leader epochs, and unknown is unknown.
- **O** No group's offset passes a record that the copy holds and the group has not read.
"""
