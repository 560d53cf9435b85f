"""The process on each VM that connects the two networks for Kafka.

- ``model``: brokers, health, metrics and status as values; no IO.
- ``command``: ``appliance source``, a tunnel server that dials the source brokers, and ``appliance destination``, the
  brokers' names and ports on this VM's loopback.
- ``endpoints``, ``watcher``: an address for each broker, and the brokers that live metadata name.
- ``source_tunnel``: the way to the brokers of one source cluster; an order has one to each other cluster.
- ``status``, ``order_status``: health, metrics and status over HTTP, that of the other end through the tunnel.
"""
