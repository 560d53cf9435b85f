"""The contents of the control center, made from snapshots; no IO.

- ``history``, ``rings``: the last hour and the last day in numbers, bounded.
- ``history_bytes``: the same in a file.
- ``charts``: the curves of a link or a topic, with marks.
- ``events``: the changes between two snapshots, and those that the clusters remember.
- ``worst``: the order of states, a link in a headline, and the time of its state's fact.
- ``tables``: rows of topics, partitions and groups: searched, filtered, sorted, and a page of them.
- ``actions``: the operator's commands, from the fields of a form, and those that may resolve a problem.
- ``connect``: the link as a connector of Kafka Connect.
- ``tunnel_end``: both ends of the tunnel in rows, from their status document.
- ``text``: numbers and times as people read them.
"""
