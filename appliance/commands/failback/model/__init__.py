"""Decisions of a failback; no IO.

- ``failback_plan``: where the link in reverse begins, and where the link continues after it.
- ``failback_report``: the outcome.
"""
