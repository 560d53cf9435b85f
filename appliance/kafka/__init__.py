"""Kafka's protocol, as far as the appliance speaks it.

- ``records``: record batches; bytes in, bytes out.
- ``protocol``: requests, responses and log-in as values and bytes.
- ``client``: connections, and each call with its answer: the IO.
"""
