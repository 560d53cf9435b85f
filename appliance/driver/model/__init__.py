"""Decisions of the driver; no IO.

- ``link_facts``: the decision of a start by the facts of a link, and the link that may continue.
- ``assignments``: lanes over tasks by their load, and the assignments of these.
"""
