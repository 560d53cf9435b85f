"""What runs on each VM to make the two networks one for Kafka.

- ``source_side``: the tunnel's server, and how it finds the brokers.
- ``destination_side``: the DNS shim and the tunnel's client, joined by ``endpoints``: a name that the shim is asked for
  becomes an address on which the client already listens when the answer goes out.
- ``brokers``, ``watcher``: the source cluster's live metadata, held against the allow-list: endpoints are opened before
  anybody asks for them, and brokers outside of the list are refused and shown.
- ``health``, ``metrics``, ``status``: what each end shows of itself over HTTP.
"""
