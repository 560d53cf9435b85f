"""The engine: what is fetched is written in transactions, exactly once.

Comes in: the lanes of an assignment. Goes out: copies and positions, in transactions.

- ``read``: from Fetch to buffered batches.
- ``write``: from batches to committed transactions.
- ``task``: one Spark task: its lanes, and its process.
- ``control``: the connection between the tasks and the driver.
- ``problem_log``: open problems, each logged once.
- ``model``: decisions and values without IO.

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
