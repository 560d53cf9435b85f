"""What the appliance is measured against, on this machine, with real peers.

- ``row``: one measured figure beside its peer's, as a table or as JSON.
- ``replicate``: our replicator beside MirrorMaker 2, each a ``copying`` made by ``our_replicator`` or ``mirror_maker``;
  ``clusters``, ``filling``, ``watching`` and ``counting`` are the two clusters, the records, the stopwatch, the proof.
- ``wan``: both over a long line, which is ``wan_proxy`` between the clusters of ``wan_sites``.
- ``footprint`` and ``procfs``: what a program costs in memory and, when it has nothing to do, in processor time.

Nothing here is a pass mark: a figure is printed beside its limit or its peer, and read by people.
"""
