"""Clusters, loads, contenders and instruments of the benchmarks.

- ``clusters``, ``wan_sites``, ``wan_proxy``, ``order_sites``: the clusters of a benchmark.
- ``workloads``: the contenders and their loads.
- ``clients``: the producers and consumers of the loads.
- ``filling``, ``events``, ``cards``, ``interleaving``, ``compacting``, ``topic_load``, ``steady_records``,
  ``numbered_records``, ``group_offsets``: loads.
- ``copying``, ``our_replicator``, ``spark_cluster``, ``mirror_maker``, ``record_program``,
  ``transforming``: contenders.
- ``replicators``, ``connect_workers``: two of a kind, of which one copies and the other stands by.
- ``raw_batches``, ``limit``: fetching and producing alone, as the limit.
- ``watching``, ``handing_over``, ``counting``, ``footprint``, ``procfs``, ``running``: instruments.
- ``latency_sender``, ``latency_receiver``, ``latency_figures``: latency.
- ``tunnel_load``, ``tunnel_ours``, ``tunnel_strangers``, ``tunnel_stunnel``, ``tunnel_target``, ``tunnel_ways``: the
  tunnel.
- ``row``, ``setup``, ``plot``, ``progress``: results, with the options and the machine of the measurement.
"""
