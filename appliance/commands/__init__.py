"""The operator's commands on a link: each is declared in the file that does its work.

- ``pause``, ``resume``, ``resumption``, ``positions_adoption``: ``appliance pause`` and ``resume``; stopped partitions
  that go on, and links.
- ``promotion``, ``source_transactions``: ``appliance promote`` and ``failover``; partly copied transactions.
- ``removal``, ``deletion``: ``appliance rm-topic``, and ``link``.
- ``reset``: ``appliance reset``.
- ``lanes``, ``layout_change``: ``appliance lanes``, and another layout of an existing link.
- ``offsets``, ``offsets_build``: ``appliance offsets``.
- ``configs``, ``acls``, ``transform``: ``appliance configs``, ``acls`` and ``transform``, which change nothing.
- ``spark``, ``completion``: ``appliance spark`` and ``completion``.
- ``failback``, ``adoption``: ``appliance failback`` and ``adopt``.
- ``order``: ``appliance order``, the total order of several clusters.
- ``run``: one run of such a command, and what several need.
- ``model``: losses and reports; no IO.
"""
