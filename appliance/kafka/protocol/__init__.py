"""Kafka's requests and responses as values and bytes; no IO.

- ``wire``, ``flexible``: frames, and the parts of flexible versions (KIP-482).
- ``lengths``: the lengths in a response, checked before it is read.
- ``versions``, ``older``: the supported API versions, and messages in older ones.
- ``sasl``: log-in mechanisms as generators of tokens.
- ``metadata``: brokers, topics and leaders.
- ``answer``: error codes as our errors.
"""
