"""A link as values and as records; no IO.

- ``naming``: the names of copies, positions and transactional ids, and which topics are copied.
- ``replicas``: each source partition with the partition of its copy, and its lane.
- ``position``: how far a source partition is copied.
- ``checkpoint``, ``checkpoint_records``: all that the destination remembers of a lane, and its records.
- ``offset_map``, ``offset_tail``, ``offset_runs``: from source offsets to those of a copy, and back.
- ``offset_records``: maps of offsets as records.
- ``segment_log``: the segments of maps in one lane's partition.
- ``link_check``: a positions topic that may be gone on with, or the reason why not (invariant H).
- ``translation``: the answer to the question where an offset of one side lies on the other.
- ``claims``: the links that copies belong to (invariant I).
- ``mirror_records``: MirrorMaker 2's checkpoints and heartbeats.
- ``topic_configs``: the settings of the topics that a link makes.
- ``copied_acls``: the ACLs that copies get of their source topics.
- ``states``: the states of a lane, as a table.
- ``copy_states``: the states of copies, which an operator's commands change, as a table and as records' content.
"""
