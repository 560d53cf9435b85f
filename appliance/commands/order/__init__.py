"""``appliance order``: the commands of a total order, each in a file of its own.

- ``command``: the table of them.
- ``status``: the order as all clusters' committed facts show it.
"""
