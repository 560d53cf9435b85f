"""Decisions of failing over; no IO.

- ``group_plan``: a group's commits at the destination, its progress there, and MirrorMaker 2's checkpoints.
- ``newest_groups``: the last seen groups, and their states in sentences.
- ``failback_plan``: where the link in reverse begins, and where the link continues after it.
- ``failback_report``: the outcome of a failback.
- ``removal_report``: the outcomes of removing topics, and of deleting a link.
- ``torn_transactions``: partly copied transactions of the source.
- ``loss``, ``report``: the losses of a promotion, and the outcome of a command.
"""
