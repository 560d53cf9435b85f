"""What the appliance is measured against, on this machine, with real peers.

- ``row``: one measured figure beside its peer's, as a table or as JSON; ``plot``: as a picture; ``setup``: measured
  on what.
- ``replicate``: our replicator beside the others of ``contenders``, on the ``workloads``. Each is a ``copying`` that
  ``our_replicator``, ``mirror_maker`` or ``record_by_record`` starts (its program is ``record_program``); ``limit``
  fetches and produces without copying.
- ``clusters``, ``filling``, ``watching`` and ``counting`` are the two clusters, the records, the stopwatch, the proof,
  which ``whole`` asks for. ``interleaving`` and ``compacting``: records of transactions, and a topic with holes;
  ``bare``: the protocol bare.
- ``wan``: ours and MirrorMaker 2 over a long line, which is ``wan_proxy`` between the clusters of ``wan_sites``.
- ``latency``: both at an even pace, from ``latency_sender`` to ``latency_receiver``.
- ``backlog``: memory, ``sampling`` it, while gigabytes are caught up with; ``topics``: a thousand of them, by ``many``.
- ``start``: a lane's start behind millions of commits, the ``positions_log`` of which is written by hand.
- ``spark``: tasks in local mode, and in a ``spark_cluster``; ``batches``: what a rebuild costs, without a broker.
- ``recovery``: from SIGKILL to the first record of a ``trickle``; ``tunnel``: ours beside stunnel, the ``tunnel_ways``.
- ``footprint`` and ``procfs``: what a program costs in memory and in processor time; ``running`` and ``loopback``:
  programs beside it, and where they listen.

Nothing here is a pass mark: a figure is printed beside its limit or its peer, and read by people.
"""
