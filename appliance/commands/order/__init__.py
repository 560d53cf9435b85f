"""``appliance order``: the commands of a total order, each in a file of its own.

- ``command``: the table of them.
- ``run``: the process beside one cluster, and a try of an order on one machine.
- ``pages``: health, metrics and status of that process.
- ``change``: another home, other members, an origin that goes on.
- ``rebuild``, ``setting_aside``: a T-global made anew, and what it alone has shown.
- ``status``: the order as all clusters' committed facts show it.
- ``origin``: offsets of T-global, and of T in each cluster.
"""
