"""The process on each VM that connects the two networks for Kafka.

- ``model``: brokers, health, metrics and status as values; no IO.
- ``source_side``: a tunnel server that dials the source brokers.
- ``destination_side``: the source brokers' names and ports on this VM's loopback.
- ``endpoints``, ``watcher``: an address for each broker, and the brokers that live metadata name.
- ``command``: ``appliance source`` and ``appliance destination``.
- ``status``: health, metrics and status over HTTP.
- ``far_end``: the status of the other end, through the tunnel.
"""
