"""Kafka's protocol: requests and answers, connections, record batches. Bytes in, values out; IO in three files.

``wire``, ``sasl``, ``versions``, ``metadata``, ``batch``, ``committed``, ``records``, ``outgoing`` are pure;
``connection``, ``login`` and ``cluster`` move bytes.
"""
