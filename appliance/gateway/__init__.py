"""What runs on each VM to make the two networks one for Kafka.

- ``source_side``: the tunnel's server, and how it finds the brokers.
- ``destination_side``: the DNS shim and the tunnel's client, joined by ``endpoints``: a name that the shim is asked for
  becomes an address on which the client already listens when the answer goes out.
"""
