"""Two real clusters on loopback and the whole appliance between them.

- ``jars``, ``java``, ``rehearsal`` and ``installation``: Kafka itself, fetched once and made quick to start.
- ``plan``: what a cluster is; ``ports``, ``certificates``, ``properties`` and ``layout`` make files of it.
- ``owned`` and ``process``: programs that never outlive us.
- ``broker`` and ``cluster``: the plan, running; ``client``: how to reach it.
"""
