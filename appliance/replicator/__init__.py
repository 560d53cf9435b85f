"""The replicator: which topics, by which lane, in which transaction; scheduled by Spark, remembered by the destination.

Comes in: settings, metadata, the positions topic. Goes out: copies and positions, in transactions.

- ``driver``, ``discovery``: topics and partitions found every few seconds, and the plan of lanes and tasks.
- ``establish``, ``resume``: a link made once and checked at every start; the operator's word on what has stopped.
- ``config_follower``, ``configs_command``: the settings of copies as those of their sources, and ``appliance configs``.
- ``acl_follower``, ``acls_command``: the ACLs of copies for the readers of their sources, and ``appliance acls``.
- ``offsets_build``: maps of offsets for what was copied before there were any.
- ``failback``: ``appliance failback``.
- ``failback_link``, ``failback_beginning``: the link in reverse that it runs, and where that begins.
- ``failback_diverged``, ``failback_positions``: what never came over, kept; and the positions of the link afterwards.
- ``reset``: ``appliance reset``.
- ``command``: ``appliance spark``, ``resume``, ``reset``, ``failback`` and ``offsets``.
- ``spark``: the tasks and their processes.
- ``read``: from Fetch to buffered batches.
- ``write``: from batches to committed transactions.
- ``model``: what is decided without IO.

Invariants, as the tests cite them:

- **A** A copy and the position past it commit in one transaction, or neither does.
- **B** Only the newest epoch of lane i writes what lane i owns.
- **C** A lane reads its positions only after it has fenced its predecessor.
- **D** A position never moves back, except by the operator's command.
- **E** Records of one source partition keep their order, partition, key, value, headers and timestamp.
- **F** Nothing is skipped in silence.
- **G** A topic is its id, not its name.
- **H** What is remembered is complete or refused.
- **I** A copy belongs to one link.
- **J** A copy that lost what was acknowledged is noticed, and stops.
- **K** What is new at the source begins at its beginning.
- **L** Every source offset whose record the copy holds translates exactly, both ways.
- **M** A state that forbids copying is obeyed by every replicator.
"""
