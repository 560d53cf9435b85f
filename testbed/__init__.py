"""Real Kafka clusters and processes on loopback, and the record oracle: for the demo, the tests and the benchmarks.

- ``jars``, ``installation``, ``rehearsal``: Kafka, fetched once and made quick to start.
- ``kept``: what else was fetched or built once, in the user's cache.
- ``kubernetes``: a Kubernetes of one node.
- ``control_groups``: those of a node and of a Docker engine.
- ``plan``, ``certificates``, ``properties``, ``layout``: a cluster as a plan, and its files.
- ``broker``, ``cluster``, ``vpc_dns``: the plan, running.
- ``mirror_maker``: MirrorMaker 2.
- ``process``, ``tasks``: programs and tasks that never outlive their owner.
- ``reading``, ``comparison``: both sides read by an independent consumer, record by record.
"""
