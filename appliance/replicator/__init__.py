"""The replicator: which topics, by which lane, in which transaction; driven by Spark, remembered by the destination.

``naming``, ``plan``, ``position``, ``states``, ``seating``, ``pace`` are pure. ``lane`` writes, ``intake`` reads, with
a ``fetcher`` for each leader, a ``buffer`` for each partition and an ``allowance`` for all, ``copy`` drives both in a
Spark task; ``driver`` plans and watches, ``spark`` is the only room that knows PySpark.

Invariants, as the tests cite them:

- **A** A copy and the position past it commit in one transaction, or neither does.
- **B** Only the newest epoch of lane i writes what lane i owns.
- **C** A lane reads its positions only after it has fenced its predecessor.
- **D** A position never moves back.
- **E** Records of one source partition keep their order, partition, key, value, headers and timestamp.
- **F** Nothing is skipped in silence.
- **G** A topic is its id, not its name.
"""
