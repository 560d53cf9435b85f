"""Connections to brokers, and every call that is made on them.

- ``interface``: what the engine asks of a cluster; the others are the real one, and what is asked through it.
- ``dial``, ``login``, ``connection``, ``sending``, ``keepalive``: one connection, from a name to pipelined requests.
- ``cluster``: a cluster as a set of connections, followed through live metadata.
- ``fetch``, ``fetch_session``, ``partition_reader``, ``offsets``, ``leader_epochs``: reading.
- ``produce``, ``transactions``: writing.
- ``topics``, ``configs``, ``config_filter``: topics made, grown and configured.
- ``open_transactions``: the transactions that hold a last stable offset.
"""
