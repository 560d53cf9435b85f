"""Kafka's protocol: requests and answers, connections, record batches. Bytes in, values out; IO in a few files.

``wire``, ``sasl``, ``versions``, ``metadata``, ``batch``, ``committed``, ``records``, ``outgoing`` are pure;
``dial``, ``connection`` with ``sending`` and ``keepalive``, ``login`` and ``cluster`` move bytes.
"""
