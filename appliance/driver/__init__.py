"""The replicator: it looks at both clusters, assigns lanes to Spark's tasks, and copies until it is stopped.

- ``replicator``, ``discovery``: the whole; the search for topics and partitions every few seconds.
- ``establish``: making a link, and checking it at every start.
- ``jobs``, ``task_reports``: the Spark jobs that copy, and what their tasks report.
- ``daemon``: the process that forks these tasks.
- ``config_follower``, ``acl_follower``, ``backlog``: the settings and ACLs of copies, and how much they lack still.
- ``offsets_build``: maps of offsets for records that were copied without one.
- ``layout_writer``, ``unfinished_layout``: another layout of the lanes, and one that an older release left unfinished.
- ``model``: decisions without IO.
"""
