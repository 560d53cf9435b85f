"""A link as values and as records; no IO.

- ``naming``: the names of positions and transactional ids, and the choice of copied topics.
- ``naming_policies``: the names of copies, one class for each kind, and who writes to them.
- ``replicas``: each source partition with the partition of its copy, and its lane.
- ``position``: the progress of copying a source partition.
- ``agreement``: how far the logs of a source partition and of its copy agree (invariant N).
- ``checkpoint``, ``checkpoint_records``: the destination's state of a lane, and its records.
- ``stops``: the kinds of stops, with the commands that end them.
- ``link_sql``: the changes of the link's SQL, and which statement has made the copies of which records.
- ``json_records``: JSON that anybody may have written, read by its types and ranges.
- ``offset_map``, ``offset_tail``, ``offset_runs``: from source offsets to those of a copy, and back.
- ``offset_records``: maps of offsets as records.
- ``segment_log``: the segments of maps in one lane's partition.
- ``link_check``: the check whether a link may continue with its positions topic (invariant H).
- ``topic_choice``: the topics that a command is about, by one rule.
- ``translation``: the translation of an offset to the other side.
- ``claims``, ``claim_ledger``: the links that copies belong to (invariant I), as records and as one link has read them.
- ``claim_changes``: the changes of the registry by which a link claims copies.
- ``link_topics``: the topics that a link copies, as it tells others.
- ``layout``, ``lane_moves``: the number of lanes, the lane of each source partition, and what a change of these writes.
- ``problems``: the open problems of the running replicator.
- ``producers``: the producer ids of lanes, and their records.
- ``mirror_records``: MirrorMaker 2's checkpoints and heartbeats.
- ``order``, ``order_records``: the promises, ranks and marks of a total order, as values and as records.
- ``topic_configs``: the settings of the topics that a link makes.
- ``copied_acls``: the ACLs that copies get of their source topics.
- ``states``: the states of a lane, as a table.
- ``copy_states``: the states of copies, which an operator's commands change, as a table and as records' content.
"""
