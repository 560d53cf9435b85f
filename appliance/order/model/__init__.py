"""Decisions of the order, without IO.

- ``elections``: promises, votes, and the gate.
- ``changes``: the values that a transaction of the order's lane writes.
"""
