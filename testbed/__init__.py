"""Real Kafka clusters and processes on loopback, and the record oracle: for the demo, the tests and the benchmarks.

- ``jars``, ``java``, ``installation``, ``rehearsal``: Kafka, fetched once and made quick to start.
- ``plan``, ``ports``, ``certificates``, ``properties``, ``layout``: a cluster as a plan, and its files.
- ``broker``, ``zookeeper``, ``cluster``, ``client``, ``vpc_dns``: the plan, running, and how to reach it.
- ``process``, ``tasks``: programs and tasks that never outlive their owner.
- ``reading``, ``fingerprint``, ``comparison``: both sides read by an independent consumer, record by record.
"""
