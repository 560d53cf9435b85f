"""Clusters, loads, contenders and instruments of the benchmarks.

- ``clusters``, ``wan_sites``, ``wan_line``, ``wan_proxy``, ``loopback``: where is measured.
- ``filling``, ``events``, ``interleaving``, ``compacting``, ``many``, ``trickle``, ``workloads``, ``positions_log``:
  loads.
- ``contenders``, ``copying``, ``our_replicator``, ``spark_cluster``, ``mirror_maker``, ``record_by_record``,
  ``record_program``, ``bare``, ``limit``: who copies.
- ``watching``, ``counting``, ``whole``, ``sampling``, ``footprint``, ``procfs``, ``running``: instruments.
- ``latency_sender``, ``latency_receiver``, ``latency_record``, ``latency_figures``: latency.
- ``tunnel_load``, ``tunnel_ours``, ``tunnel_strangers``, ``tunnel_stunnel``, ``tunnel_target``, ``tunnel_ways``: the
  tunnel.
- ``options``, ``row``, ``setup``, ``plot``: options and results.
"""
