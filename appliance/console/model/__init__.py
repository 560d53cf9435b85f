"""The contents of the control center, made from snapshots; no IO.

- ``history``: the last hour in numbers, bounded.
- ``events``: the changes between two snapshots, and those that the clusters remember.
- ``tables``: rows of topics, partitions and groups: searched, filtered, sorted, and a page of them.
- ``problems``: problems with the commands that may resolve them.
- ``actions``: the operator's commands, from the fields of a form.
- ``connect``: the link as a connector of Kafka Connect.
- ``tunnel_end``: an end of the tunnel in rows, from its status document.
- ``text``: numbers and times as people read them.
"""
