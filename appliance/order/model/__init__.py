"""Decisions of the order, without IO.

- ``elections``: promises, votes, and the gate.
- ``beats``: beats, wishes, and the watch over the home.
- ``wishes``: operators' commands as wishes.
- ``gate``: the rank up to which a home may show.
- ``changes``: the values that a transaction of the order's lane writes.
- ``cluster_facts``: the facts of each cluster, and the view that they give.
- ``view``: the order as they show it.
- ``rebuilding``: what two T-globals share, and what a rebuilt cluster answers for.
- ``shown``: the view as JSON, and for a terminal.
- ``metrics``: the view for Prometheus.
"""
