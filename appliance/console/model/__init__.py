"""What the control center shows, made from snapshots; no IO.

- ``history``: the last hour in numbers, bounded.
- ``events``: what has changed between two snapshots.
- ``tables``: rows of topics, partitions and groups: searched, filtered, sorted, and a page of them.
- ``text``: numbers, times and states as people read them.
"""
