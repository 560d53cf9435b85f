"""What a link is, as values and as records; no IO.

- ``naming``: the names of copies, positions and transactional ids, and which topics are copied.
- ``replicas``: each source partition with the partition of its copy, and its lane.
- ``position``: how far a source partition is copied.
- ``checkpoint``, ``checkpoint_records``: all that the destination remembers of a lane, and its records.
- ``link_check``: a positions topic that may be gone on with, or the reason why not (invariant H).
- ``claims``: the links that copies belong to (invariant I).
- ``topic_configs``: the settings of the topics that a link makes.
- ``states``: the states of a lane, as a table.
"""
