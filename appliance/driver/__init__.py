"""The replicator: it searches both clusters for topics, assigns lanes to Spark's tasks, and copies until it is stopped.

- ``composition``: the parts of a replicator, and the order in which they start and end.
- ``background``: the loop that runs the services beside the copying.
- ``establish``, ``link_check``: a start, which makes the link or continues it; the facts of an existing link.
- ``replicator``, ``jobs``, ``task_reports``: lanes over tasks, in one Spark job after the other.
- ``spark_start``, ``daemon``: the start of Spark and of the SQL in it; the process that forks its tasks.
- ``discovery``, ``copy_topics``: the search for topics, which makes and grows copies.
- ``config_follower``, ``acl_follower``: the settings and ACLs of copies, compared and followed.
- ``missing_maps``: copies for which no map of offsets has been written.
- ``layout_writer``: another layout of the lanes, and one that an older release left unfinished.
- ``model``: decisions without IO.
"""
