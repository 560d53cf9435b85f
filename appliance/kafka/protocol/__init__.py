"""Kafka's requests and responses as values and bytes; no IO.

- ``wire``, ``flexible``: frames, and the parts of flexible versions (KIP-482).
- ``versions``, ``older``: the API versions that are spoken, and messages in older ones.
- ``sasl``: log-in mechanisms as generators of tokens.
- ``metadata``: brokers, topics and leaders.
- ``answer``: error codes as our errors.
- ``config_search``: the settings of a topic that a cluster takes, found by questions.
"""
